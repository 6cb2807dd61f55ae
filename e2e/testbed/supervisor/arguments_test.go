package main

import (
	"slices"
	"testing"
)

func TestFlagsAndOperandsComeInAnyOrder(t *testing.T) {
	for _, line := range [][]string{
		{"3", "--name", "run", "--nodes=4"},
		{"--name", "run", "3", "--nodes", "4"},
	} {
		arguments := newArguments("up", "N").choosesBed()
		nodes := arguments.Int("nodes", 2, "")
		operands, err := arguments.read(line)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(operands, []string{"3"}) || arguments.bed != "run" || *nodes != 4 {
			t.Errorf("%q gives %q, bed %s, %d nodes", line, operands, arguments.bed, *nodes)
		}
	}
}

func TestTheEnvironmentChoosesTheTestBedUnlessAFlagDoes(t *testing.T) {
	t.Setenv(nameVariable, "from-environment")
	for want, line := range map[string][]string{"from-environment": nil, "flag": {"--name=flag"}} {
		arguments := newArguments("down").choosesBed()
		if _, err := arguments.read(line); err != nil {
			t.Fatal(err)
		}
		if arguments.bed != want {
			t.Errorf("%q chooses %s, want %s", line, arguments.bed, want)
		}
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for _, line := range [][]string{{}, {"1", "2"}, {"1", "--unknown"}, {"1", "--name=../x"}} {
		if operands, err := newArguments("up", "N").choosesBed().read(line); err == nil {
			t.Errorf("%q gives %q", line, operands)
		}
	}
	for _, operand := range []string{"0", "100", "x", ""} {
		if value, err := number(operand, "the number of clusters", 99); err == nil {
			t.Errorf("%q gives %d", operand, value)
		}
	}
}
