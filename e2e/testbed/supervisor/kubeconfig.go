package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/cluster"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

func kubeconfig(_ context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("kubeconfig", "I").choosesBed()
	operands, err := arguments.read(args)
	if err != nil {
		return err
	}
	found, err := findCluster(checkout, arguments.bed, operands[0])
	if err != nil {
		return err
	}
	fmt.Println(found.Kubeconfig)
	return nil
}

// kubectl becomes kubectl. All arguments after the cluster's are kubectl's own, so that only the
// environment chooses the test bed.
func kubectl(_ context.Context, checkout layout.Checkout, args []string) error {
	if len(args) == 0 {
		return errors.New("which cluster? usage: hack/testbed kubectl I ARGUMENTS")
	}
	arguments := newArguments("kubectl", "I").choosesBed()
	operands, err := arguments.read(args[:1])
	if err != nil {
		return err
	}
	found, err := findCluster(checkout, arguments.bed, operands[0])
	if err != nil {
		return err
	}
	program := filepath.Join(checkout.Programs(), "kubectl")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("looking for kubectl, which `hack/testbed build` makes: %w", err)
	}
	environment := cluster.KubectlEnvironment(found.Kubeconfig, filepath.Dir(found.Kubeconfig))
	if err := syscall.Exec(program, append([]string{program}, args[1:]...), environment); err != nil {
		return fmt.Errorf("running %s: %w", program, err)
	}
	return nil
}

func findCluster(checkout layout.Checkout, name, operand string) (*bed.Cluster, error) {
	store, err := bed.Open(checkout.Beds())
	if err != nil {
		return nil, err
	}
	up, err := store.Load(name)
	if err != nil {
		return nil, err
	}
	index, err := number(operand, "the cluster", len(up.Clusters))
	if err != nil {
		return nil, err
	}
	return up.Cluster(index)
}
