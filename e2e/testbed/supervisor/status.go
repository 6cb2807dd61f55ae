package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/layout"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// The states of a component.
const (
	notStarted = "not started"
	running    = "running"
	crashed    = "crashed"
)

// tailLines is how much of the log of a crashed component is shown.
const tailLines = 20

func status(_ context.Context, checkout layout.Checkout, args []string) error {
	arguments := newArguments("status").choosesBed()
	if _, err := arguments.read(args); err != nil {
		return err
	}
	store, err := bed.Open(checkout.Beds())
	if err != nil {
		return err
	}
	up, err := store.Load(arguments.bed)
	if err != nil {
		return err
	}
	fmt.Printf("test bed %s in %s\n", up.Name, up.Directory)
	return report(os.Stdout, up)
}

// report prints a line for each component and what the crashed ones said last.
func report(out io.Writer, up *bed.Bed) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tCOMPONENT\tSTATE\tPID\tPORTS\tMEMORY")
	var tails []string
	var total int64
	complete := true
	for _, cluster := range up.Clusters {
		for _, component := range cluster.Components {
			state, pid, bytes, memory := inspect(component)
			total += bytes
			complete = complete && state == running
			fmt.Fprintf(table, "%d %s\t%s\t%s\t%s\t%s\t%s\n", cluster.Index, cluster.Name, component.Name,
				state, pid, join(component.Ports), memory)
			if state == crashed {
				tail, err := process.Tail(component.Log, tailLines)
				if err != nil {
					tail = err.Error()
				}
				tails = append(tails, fmt.Sprintf("%s of %s has crashed; the end of its log:\n%s\n", component.Name, cluster.Name, tail))
			}
		}
	}
	fmt.Fprintf(table, "\t\t\t\t\t%s\n", megabytes(total))
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	for _, tail := range tails {
		fmt.Fprintf(out, "\n%s", tail)
	}
	if !complete {
		return errors.New("not everything runs: end the test bed with `hack/testbed down` and start it anew")
	}
	return nil
}

// inspect tells how a component is; what there is not to tell of one that does not run is empty.
func inspect(component bed.Component) (state, pid string, bytes int64, memory string) {
	if component.Process == nil {
		return notStarted, "", 0, ""
	}
	pid = strconv.Itoa(component.Process.PID)
	if !component.Process.Running() {
		return crashed, pid, 0, ""
	}
	bytes, err := component.Process.Memory()
	if err != nil {
		return running, pid, 0, "unknown" // another user's, or ended since
	}
	return running, pid, bytes, megabytes(bytes)
}

func join(ports []int) string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(port)
	}
	return strings.Join(texts, ",")
}

func megabytes(bytes int64) string {
	return fmt.Sprintf("%d MB", bytes/1_000_000)
}
