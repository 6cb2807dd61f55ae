package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
)

// killDeadline is how long the system may take to end a process that was killed.
const killDeadline = 10 * time.Second

func down(_ context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("down").choosesBed()
	if _, err := arguments.read(args); err != nil {
		return err
	}
	store, err := bed.Open(checkout.Beds())
	if err != nil {
		return err
	}
	up, err := store.Load(arguments.bed)
	if errors.Is(err, bed.ErrNone) {
		fmt.Printf("test bed %s is not up\n", arguments.bed)
		return nil
	}
	if err != nil {
		return err
	}
	if err := end(store, up); err != nil {
		return err
	}
	fmt.Printf("test bed %s is down\n", up.Name)
	return nil
}

// end ends every process of a test bed, removes its data, and last its record. The processes are
// killed: nothing that they would save on their way out outlives them.
func end(store bed.Store, ending *bed.Bed) error {
	for _, cluster := range ending.Clusters {
		for _, component := range cluster.Components {
			if component.Process == nil {
				continue
			}
			if err := component.Process.Kill(killDeadline); err != nil {
				return fmt.Errorf("ending %s of %s: %w", component.Name, cluster.Name, err)
			}
		}
	}
	if !strings.HasPrefix(filepath.Base(ending.Directory), directoryPrefix) {
		return fmt.Errorf("the record of test bed %s names the directory %q, which is none of a test bed: remove it by hand",
			ending.Name, ending.Directory)
	}
	if err := os.RemoveAll(ending.Directory); err != nil {
		return fmt.Errorf("removing the data of test bed %s: %w", ending.Name, err)
	}
	return store.Remove(ending.Name)
}
