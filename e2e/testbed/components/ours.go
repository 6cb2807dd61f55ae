package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ferromesh/ferromesh/e2e/testbed/components/controllers"
	"github.com/ferromesh/ferromesh/e2e/testbed/components/kubelet"
)

func controllerLoops(args []string) int {
	return untilSignalled(controllers.Main, args)
}

func fakeKubelet(args []string) int {
	return untilSignalled(kubelet.Main, args)
}

// untilSignalled runs a component of our own until it ends or SIGTERM or SIGINT arrives.
func untilSignalled(run func(ctx context.Context, args []string) error, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
