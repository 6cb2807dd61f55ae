package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// CompileFlags make the cold build cheaper by leaving out debug information, which the linker would
// drop anyway. Go's build cache serves only builds with the same flags.
var CompileFlags = []string{"-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false"}

// linkFlags drop the symbols and have the components tell the version of Kubernetes that go.mod
// pins; without them they call themselves v0.0.0.
func linkFlags(kubernetes string) string {
	number := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	flags := []string{
		"-s", "-w",
		"-X k8s.io/component-base/version.gitVersion=" + kubernetes,
		"-X k8s.io/client-go/pkg/version.gitVersion=" + kubernetes,
	}
	if len(number) == 3 {
		flags = append(flags,
			"-X k8s.io/component-base/version.gitMajor="+number[0],
			"-X k8s.io/component-base/version.gitMinor="+number[1])
	}
	return "-ldflags=" + strings.Join(flags, " ")
}

// kubernetesVersion is the version that go.mod pins.
func kubernetesVersion(ctx context.Context, module string) (string, error) {
	command := Go(ctx, module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes in go.mod: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// Go makes a command of the Go tool in a module's directory. Without cgo no C compiler is needed.
func Go(ctx context.Context, module string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return command
}

// compile builds a package of a module and says how far it is.
func compile(ctx context.Context, module, pkg, output, linkFlags string, say io.Writer) error {
	progress := newProgress()
	finished := make(chan struct{})
	defer close(finished)
	go progress.report(say, finished)

	total, err := packageCount(ctx, module, pkg, progress)
	if err != nil {
		return fmt.Errorf("listing the packages of %s: %w\n%s", pkg, err, progress.complaints())
	}
	progress.expect(total)
	command := Go(ctx, module, slices.Concat([]string{"build", "-v", "-o", output}, CompileFlags, []string{linkFlags, pkg})...)
	command.Stdout, command.Stderr = progress, progress
	if err := command.Run(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, progress.complaints())
	}
	return nil
}

// packageCount is how many packages a program is made of. This downloads the modules, too.
func packageCount(ctx context.Context, module, pkg string, progress io.Writer) (int, error) {
	command := Go(ctx, module, "list", "-deps", pkg)
	command.Stderr = progress
	output, err := command.Output()
	return strings.Count(string(output), "\n"), err
}
