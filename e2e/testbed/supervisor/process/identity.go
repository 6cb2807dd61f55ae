// Package process starts, recognises and ends processes.
package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identity tells a process from any later one that gets the same pid.
type Identity struct {
	PID int `json:"pid"`
	// Started is when, in clock ticks since the system's boot (proc(5): field 22 of stat).
	Started uint64 `json:"started"`
	// Boot is the system's boot (proc(5): sys/kernel/random/boot_id).
	Boot string `json:"boot"`
}

// Identify returns the identity of the process that has this pid now.
func Identify(pid int) (Identity, error) {
	now, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("reading the boot id: %w", err)
	}
	return Identity{PID: pid, Started: now.started, Boot: strings.TrimSpace(string(boot))}, nil
}

// Running tells whether this very process still runs.
func (i Identity) Running() bool {
	current, err := Identify(i.PID)
	if err != nil || current != i {
		return false
	}
	now, err := readStat(i.PID)
	return err == nil && now.state != "Z" && now.state != "X"
}

// stat is what is used of /proc/PID/stat.
type stat struct {
	state   string
	started uint64
}

func readStat(pid int) (stat, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	parsed, err := parseStat(content)
	if err != nil {
		return stat{}, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	return parsed, nil
}

func parseStat(content []byte) (stat, error) {
	// The second field is the name in parentheses and may itself hold blanks and parentheses.
	_, rest, found := cutLast(content, ')')
	fields := strings.Fields(string(rest))
	const stateField, startedField = 3 - 3, 22 - 3
	if !found || len(fields) <= startedField {
		return stat{}, fmt.Errorf("stat has an unknown form: %q", content)
	}
	started, err := strconv.ParseUint(fields[startedField], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("stat has an unknown start time: %w", err)
	}
	return stat{state: fields[stateField], started: started}, nil
}

func cutLast(content []byte, separator byte) (before, after []byte, found bool) {
	at := bytes.LastIndexByte(content, separator)
	if at < 0 {
		return content, nil, false
	}
	return content[:at], content[at+1:], true
}
