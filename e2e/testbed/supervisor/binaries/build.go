// Package binaries builds the programs that a test bed runs, and caches them by their sources.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

const (
	// program is the one binary that is all components.
	program = "components"
	// definitionsFile holds Istio's CustomResourceDefinitions.
	definitionsFile = "istio-crds.yaml"
)

// links are the names by which the binary becomes one component (see components/main.go).
var links = []string{"etcd", "kube-apiserver", "controllers", "fake-kubelet", "kubectl", "etcdutl"}

// Built is where things are that have been built.
type Built struct {
	// Directory holds a program for each component.
	Directory string
	// IstioDefinitions is a file with Istio's CustomResourceDefinitions.
	IstioDefinitions string
}

// Build builds what is not built yet and says what it does; it says nothing when all is there.
func Build(ctx context.Context, checkout layout.Checkout, say io.Writer) (Built, error) {
	components, err := cached(checkout, "components-", checkout.Source(), []string{"components", "shape"},
		func(directory string) error { return buildComponents(ctx, checkout, directory, say) })
	if err != nil {
		return Built{}, err
	}
	istio, err := cached(checkout, "istio-", checkout.IstioSource(), []string{"crds"},
		func(directory string) error { return exportDefinitions(ctx, checkout, directory, say) })
	if err != nil {
		return Built{}, err
	}
	if err := linkPrograms(checkout, components); err != nil {
		return Built{}, err
	}
	return Built{Directory: components, IstioDefinitions: filepath.Join(istio, definitionsFile)}, nil
}

// cached returns the directory for the present state of the sources, and has it filled if it is not
// there. Directories of former states are removed: what runs out of them keeps running.
func cached(checkout layout.Checkout, prefix, module string, sources []string, fill func(directory string) error) (string, error) {
	state, err := fingerprint(module, sources, CompileFlags)
	if err != nil {
		return "", err
	}
	directory := filepath.Join(checkout.Cache(), prefix+state)
	if _, err := os.Stat(directory); err == nil {
		return directory, nil
	}
	if err := os.MkdirAll(checkout.Cache(), 0o755); err != nil {
		return "", fmt.Errorf("making the cache of the test bed: %w", err)
	}
	// Filled under another name: a build that is broken off leaves nothing that looks finished.
	fresh, err := os.MkdirTemp(checkout.Cache(), "new-")
	if err != nil {
		return "", fmt.Errorf("making the cache of the test bed: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := fill(fresh); err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", fmt.Errorf("filling the cache of the test bed: %w", err)
	}
	err = os.Rename(fresh, directory)
	if _, statErr := os.Stat(directory); err != nil && statErr != nil { // else another build was faster
		return "", fmt.Errorf("filling the cache of the test bed: %w", err)
	}
	return directory, removeFormer(checkout.Cache(), prefix, directory)
}

func removeFormer(cache, prefix, current string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("listing former builds: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(cache, entry.Name())
		if strings.HasPrefix(entry.Name(), prefix) && path != current {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing a former build: %w", err)
			}
		}
	}
	return nil
}

func buildComponents(ctx context.Context, checkout layout.Checkout, directory string, say io.Writer) error {
	version, err := kubernetesVersion(ctx, checkout.Source())
	if err != nil {
		return err
	}
	fmt.Fprintf(say, "building etcd, kube-apiserver and kubectl of Kubernetes %s for the test bed; from cold caches this takes minutes\n",
		version)
	begun := time.Now()
	output := filepath.Join(directory, program)
	if err := compile(ctx, checkout.Source(), "./components", output, linkFlags(version), say); err != nil {
		return err
	}
	for _, name := range links {
		if err := os.Symlink(program, filepath.Join(directory, name)); err != nil {
			return fmt.Errorf("naming the component %s: %w", name, err)
		}
	}
	built, err := os.Stat(output)
	if err != nil {
		return fmt.Errorf("looking at what was built: %w", err)
	}
	fmt.Fprintf(say, "built in %.0f s, %d MB\n", time.Since(begun).Seconds(), built.Size()/1_000_000)
	return nil
}

func exportDefinitions(ctx context.Context, checkout layout.Checkout, directory string, say io.Writer) error {
	fmt.Fprintln(say, "exporting the CRDs of Istio from its Go module")
	output, err := os.Create(filepath.Join(directory, definitionsFile))
	if err != nil {
		return fmt.Errorf("making the file for Istio's CRDs: %w", err)
	}
	command := Go(ctx, checkout.IstioSource(), slices.Concat([]string{"run"}, CompileFlags, []string{"./crds"})...)
	command.Stdout, command.Stderr = output, say
	if err := errors.Join(command.Run(), output.Close()); err != nil {
		return fmt.Errorf("exporting the CRDs of Istio: %w", err)
	}
	return nil
}

// linkPrograms makes kubectl available at a fixed place.
func linkPrograms(checkout layout.Checkout, components string) error {
	if err := os.MkdirAll(checkout.Programs(), 0o755); err != nil {
		return fmt.Errorf("making %s: %w", checkout.Programs(), err)
	}
	link := filepath.Join(checkout.Programs(), "kubectl")
	target := filepath.Join("..", filepath.Base(components), "kubectl")
	if current, err := os.Readlink(link); err == nil && current == target {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renewing the link to kubectl: %w", err)
	}
	if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("renewing the link to kubectl: %w", err)
	}
	return nil
}
