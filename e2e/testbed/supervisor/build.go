package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/binaries"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

func build(ctx context.Context, checkout layout.Checkout, args []string) error {
	if _, err := newArguments("build").read(args); err != nil {
		return err
	}
	built, err := binaries.Build(ctx, checkout, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println("the programs of the test bed are in", built.Directory)
	return nil
}
