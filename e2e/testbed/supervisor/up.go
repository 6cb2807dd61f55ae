package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/binaries"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/cluster"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

func up(ctx context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("up", "N").choosesBed()
	nodes := arguments.Int("nodes", 2, "Nodes of each cluster")
	audit := arguments.Bool("audit", false, "have each API server log every request, as JSON lines, to audit.jsonl beside its kubeconfig")
	without := arguments.Bool("no-istio-crds", false, "do not install the CRDs of Istio in clusters 2 to N")
	deadline := arguments.Duration("timeout", 3*time.Minute, "how long the clusters may take to become ready")
	operands, err := arguments.read(args)
	if err != nil {
		return err
	}
	count, err := number(operands[0], "the number of clusters", shape.MaxClusters)
	if err != nil {
		return err
	}
	if *nodes < 1 || *nodes > shape.MaxNodes {
		return fmt.Errorf("--nodes is %d: give a number from 1 to %d", *nodes, shape.MaxNodes)
	}
	built, err := binaries.Build(ctx, checkout, os.Stdout)
	if err != nil {
		return err
	}
	programs, err := built.Programs(os.Getenv(binaries.AssetsVariable))
	if err != nil {
		return err
	}
	store, err := bed.Open(checkout.Beds())
	if err != nil {
		return err
	}
	launch := launch{
		store: store,
		begun: time.Now(),
		plan:  cluster.Plan{Programs: programs, Nodes: *nodes, Audit: *audit},
	}
	if !*without {
		launch.definitions = built.IstioDefinitions
	}
	if err := launch.reserve(arguments.bed, count); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *deadline, fmt.Errorf("the clusters were not ready after %s", *deadline))
	defer cancel()
	if err := launch.run(ctx); err != nil {
		return errors.Join(err, end(store, launch.bed))
	}
	launch.say(fmt.Sprintf("test bed %s is up in %s", launch.bed.Name, launch.bed.Directory))
	for _, cluster := range launch.bed.Clusters {
		fmt.Printf("%d %s\t%s\n", cluster.Index, cluster.Name, cluster.Kubeconfig)
	}
	return nil
}
