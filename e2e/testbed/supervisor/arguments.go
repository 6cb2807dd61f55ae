package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/bed"
)

// nameVariable is the environment variable that chooses a test bed.
const nameVariable = "FERROMESH_TESTBED"

// arguments is the command line of one command.
type arguments struct {
	*flag.FlagSet
	// operands name what is not a flag, for the usage line.
	operands []string
	bed      string
}

func newArguments(command string, operands ...string) *arguments {
	a := &arguments{FlagSet: flag.NewFlagSet(command, flag.ContinueOnError), operands: operands}
	a.Usage = func() {
		fmt.Fprintf(a.Output(), "usage: hack/testbed %s", command)
		for _, operand := range operands {
			fmt.Fprintf(a.Output(), " %s", operand)
		}
		fmt.Fprintln(a.Output(), " [FLAGS]")
		a.PrintDefaults()
	}
	return a
}

// choosesBed adds the flag that chooses a test bed.
func (a *arguments) choosesBed() *arguments {
	chosen := os.Getenv(nameVariable)
	if chosen == "" {
		chosen = "default"
	}
	a.StringVar(&a.bed, "name", chosen, "which test bed; "+nameVariable+" sets the default")
	return a
}

// read reads flags and operands, in any order, and returns the operands.
func (a *arguments) read(args []string) ([]string, error) {
	a.SetOutput(io.Discard) // main prints the error; the usage is for --help
	var operands []string
	for {
		if err := a.Parse(args); err != nil {
			if err == flag.ErrHelp {
				a.SetOutput(os.Stdout)
				a.Usage()
			}
			return nil, err
		}
		if a.NArg() == 0 {
			break
		}
		operands = append(operands, a.Arg(0))
		args = a.Args()[1:]
	}
	if len(operands) != len(a.operands) {
		return nil, fmt.Errorf("hack/testbed %s takes %d arguments besides flags, not %d; --help tells more",
			a.Name(), len(a.operands), len(operands))
	}
	if a.bed != "" {
		if err := bed.CheckName(a.bed); err != nil {
			return nil, err
		}
	}
	return operands, nil
}

// number reads an operand that is a number from 1 to most.
func number(operand, what string, most int) (int, error) {
	value, err := strconv.Atoi(operand)
	if err != nil || value < 1 || value > most {
		return 0, fmt.Errorf("%s is %q: give a number from 1 to %d", what, operand, most)
	}
	return value, nil
}
