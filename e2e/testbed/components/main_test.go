package main

import (
	"slices"
	"testing"
)

func TestTheCallingNameOrElseTheFirstArgumentPicksTheComponent(t *testing.T) {
	for _, c := range []struct {
		argv []string
		name string
		args []string
	}{
		{[]string{"/bin/kubectl", "get", "pods"}, "kubectl", []string{"get", "pods"}},
		{[]string{"/bin/components", "etcd", "--name=a"}, "etcd", []string{"--name=a"}},
		{[]string{"/bin/components", "nonsense"}, "nonsense", nil},
		{[]string{"/bin/components"}, "components", nil},
	} {
		name, args := pick(c.argv)
		if name != c.name || !slices.Equal(args, c.args) {
			t.Errorf("pick(%q) = %q, %q; want %q, %q", c.argv, name, args, c.name, c.args)
		}
	}
}
