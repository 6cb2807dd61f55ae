package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/cluster"
)

// AssetsVariable is the environment variable that names a directory with an etcd and a
// kube-apiserver of the user's choice; the name is that of kubebuilder and envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Programs chooses the programs to run: those in the directory of assets, if there is one, before
// those that were built. The directory must hold etcd and kube-apiserver; kubectl may be there.
func (b Built) Programs(assets string) (cluster.Programs, error) {
	own := func(name string) string { return filepath.Join(b.Directory, name) }
	programs := cluster.Programs{
		Etcd:        own("etcd"),
		APIServer:   own("kube-apiserver"),
		Controllers: own("controllers"),
		FakeKubelet: own("fake-kubelet"),
		Kubectl:     own("kubectl"),
	}
	if assets == "" {
		return programs, nil
	}
	for _, choice := range []struct {
		name     string
		program  *string
		required bool
	}{
		{"etcd", &programs.Etcd, true},
		{"kube-apiserver", &programs.APIServer, true},
		{"kubectl", &programs.Kubectl, false},
	} {
		path, err := filepath.Abs(filepath.Join(assets, choice.name))
		if err == nil {
			_, err = os.Stat(path)
		}
		switch {
		case err == nil:
			*choice.program = path
		case choice.required || !errors.Is(err, fs.ErrNotExist):
			return cluster.Programs{}, fmt.Errorf("looking for %s in the directory that %s names: %w", choice.name, AssetsVariable, err)
		}
	}
	return programs, nil
}
