// Command components is every part of a test cluster in one binary: the name it is called by, or
// else its first argument, picks the part. One binary, because the parts share most of their code.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// component runs one part of a cluster with the arguments after its name, and returns its exit code.
type component func(args []string) int

var components = map[string]component{
	"etcd":           etcd,
	"etcdutl":        etcdUtility,
	"kube-apiserver": apiServer,
	"controllers":    controllerLoops,
	"fake-kubelet":   fakeKubelet,
	"kubectl":        kubectl,
}

func main() {
	name, args := pick(os.Args)
	run, known := components[name]
	if !known {
		names := make([]string, 0, len(components))
		for name := range components {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "%q is no component: call this binary by, or with as its first argument, one of %s\n",
			name, strings.Join(names, ", "))
		os.Exit(2)
	}
	// The components read their own command line from os.Args.
	os.Args = append([]string{name}, args...)
	os.Exit(run(args))
}

// pick returns the component's name and its arguments.
func pick(argv []string) (string, []string) {
	name := filepath.Base(argv[0])
	if _, known := components[name]; known || len(argv) < 2 {
		return name, argv[1:]
	}
	return argv[1], argv[2:]
}
