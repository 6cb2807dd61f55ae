package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Install creates the CustomResourceDefinitions in a file and waits until they are served.
func (p *Plan) Install(ctx context.Context, definitions string) error {
	for _, args := range [][]string{
		{"create", "--filename", definitions},
		{"wait", "--for=condition=Established", "--timeout=60s", "--filename", definitions},
	} {
		kubectl := exec.CommandContext(ctx, p.Programs.Kubectl, args...)
		kubectl.Env = KubectlEnvironment(p.Kubeconfig(), p.Directory)
		var output bytes.Buffer
		kubectl.Stdout, kubectl.Stderr = &output, &output
		if err := kubectl.Run(); err != nil {
			return fmt.Errorf("installing %s in %s: kubectl %s: %w: %s", definitions, p.Name(), args[0], err, output.String())
		}
	}
	return nil
}

// KubectlEnvironment has kubectl use this kubeconfig, and keep its caches in this directory instead
// of the home directory.
func KubectlEnvironment(kubeconfig, directory string) []string {
	return append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+directory+"/kubectl-cache")
}
