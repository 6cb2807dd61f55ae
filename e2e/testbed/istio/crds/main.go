// Command crds writes the CustomResourceDefinitions of Istio, as its Go module carries them, to
// standard output.
package main

import (
	"fmt"
	"os"

	"istio.io/istio/manifests"
)

const definitions = "charts/base/files/crd-all.gen.yaml"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write() error {
	yaml, err := manifests.FS.ReadFile(definitions)
	if err != nil {
		return fmt.Errorf("reading %s of the Istio module: %w", definitions, err)
	}
	if _, err := os.Stdout.Write(yaml); err != nil {
		return fmt.Errorf("writing the definitions: %w", err)
	}
	return nil
}
