// Command helm renders a chart as `helm template --include-crds` does, with Helm's own engine and
// nothing else of Helm.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// release is what a chart is rendered for.
type release struct {
	name, namespace string
	values          map[string]any
}

func main() {
	// The loader tells of each symbolic link, and the definitions are one.
	slog.SetLogLoggerLevel(slog.LevelWarn)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("helm", flag.ContinueOnError)
	name := flags.String("name", "ferromesh", "name of the release")
	namespace := flags.String("namespace", "gloo-mesh", "namespace of the release")
	values := flags.String("values", "", "file of values; the chart's own where there is none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one argument is needed, the directory of the chart")
	}
	wanted := release{name: *name, namespace: *namespace}
	if *values != "" {
		text, err := os.ReadFile(*values)
		if err != nil {
			return fmt.Errorf("reading values: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &wanted.values); err != nil {
			return fmt.Errorf("reading values of %s: %w", *values, err)
		}
	}
	rendered, err := render(flags.Arg(0), wanted)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, rendered)
	return err
}

// render returns the definitions and then the objects of a chart, each kind of them by file name.
func render(directory string, wanted release) (string, error) {
	chart, err := loader.LoadDir(directory)
	if err != nil {
		return "", fmt.Errorf("loading the chart %s: %w", directory, err)
	}
	options := common.ReleaseOptions{
		Name: wanted.name, Namespace: wanted.namespace, Revision: 1, IsInstall: true,
	}
	// This also checks the values by the chart's schema.
	values, err := util.ToRenderValues(chart, wanted.values, options, common.DefaultCapabilities)
	if err != nil {
		return "", fmt.Errorf("taking the values: %w", err)
	}
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", directory, err)
	}
	var text strings.Builder
	for _, definition := range chart.CRDObjects() {
		write(&text, string(definition.File.Data))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) != "NOTES.txt" {
			write(&text, files[name])
		}
	}
	return text.String(), nil
}

// write adds the documents of a file, unless it has none.
func write(text *strings.Builder, file string) {
	file = strings.TrimPrefix(strings.TrimSpace(file), "---\n")
	if file != "" {
		fmt.Fprintf(text, "---\n%s\n", file)
	}
}
