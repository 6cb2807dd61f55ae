// Command supervisor builds, starts and ends test beds of real Kubernetes clusters. hack/testbed
// starts it and has the help text of all commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

// command runs with the arguments after its name.
type command func(ctx context.Context, checkout layout.Checkout, args []string) error

var commands = map[string]command{
	"build":      build,
	"check":      check,
	"down":       down,
	"kubeconfig": kubeconfig,
	"kubectl":    kubectl,
	"pause":      pause,
	"restore":    restore,
	"resume":     resume,
	"snapshot":   snapshot,
	"start":      start,
	"status":     status,
	"stop":       stop,
	"up":         up,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	checkout, err := layout.FromEnvironment()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("no command was given; hack/testbed --help lists them")
	}
	command, known := commands[args[0]]
	if !known {
		return fmt.Errorf("there is no command %q; hack/testbed --help lists them", args[0])
	}
	return command(ctx, checkout, args[1:])
}
