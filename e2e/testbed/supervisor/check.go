package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/binaries"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

func check(ctx context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("check")
	all := arguments.Bool("all", false, "vet the components too; for them go vet reads all of Kubernetes, which takes minutes the first time")
	if _, err := arguments.read(args); err != nil {
		return err
	}
	if err := checkFormat(ctx, checkout.Source()); err != nil { // the other module is below it
		return err
	}
	vetted := "./supervisor/..."
	if *all {
		vetted = "./..."
	}
	for _, step := range []struct {
		module string
		args   []string
	}{
		{checkout.Source(), goArgs("vet", vetted)},
		{checkout.Source(), goArgs("test", "-vet=off", "./...")},
		{checkout.IstioSource(), goArgs("vet", "./...")},
	} {
		command := binaries.Go(ctx, step.module, step.args...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("running go %s in %s: %w", step.args[0], step.module, err)
		}
	}
	return nil
}

// goArgs adds the flags of the build: with others, Go would compile all of Kubernetes once more.
func goArgs(tool string, rest ...string) []string {
	return slices.Concat([]string{tool}, binaries.CompileFlags, rest)
}

func checkFormat(ctx context.Context, module string) error {
	gofmt := exec.CommandContext(ctx, "gofmt", "-l", module)
	gofmt.Stderr = os.Stderr
	unformatted, err := gofmt.Output()
	if err != nil {
		return fmt.Errorf("running gofmt in %s: %w", module, err)
	}
	if len(bytes.TrimSpace(unformatted)) > 0 {
		return fmt.Errorf("these files are not formatted, run gofmt -w on them:\n%s", unformatted)
	}
	return nil
}
