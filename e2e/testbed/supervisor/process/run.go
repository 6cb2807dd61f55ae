package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Command is a program to run in the background.
type Command struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	// Log is the file that its output is appended to.
	Log string `json:"log"`
}

// Started is a process that this program has started.
type Started struct {
	Identity Identity
	// Ended is closed when the process has ended.
	Ended <-chan struct{}

	result error
}

// Result says how the process ended, once Ended is closed.
func (s *Started) Result() error { return s.result }

// Start runs the command in a session of its own: it outlives this program and its terminal.
func Start(command Command) (*Started, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close() // the process has a handle of its own

	cmd := exec.Command(command.Program, command.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Program, err)
	}
	ended := make(chan struct{})
	started := &Started{Ended: ended}
	// Nobody has waited for the process yet, so that its pid is still its own even if it has ended.
	identity, identifyErr := Identify(cmd.Process.Pid)
	started.Identity = identity
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		started.result = err
		close(ended)
	}()
	if identifyErr != nil {
		return nil, errors.Join(identifyErr, cmd.Process.Kill())
	}
	return started, nil
}

// Kill ends the process and what it has started, at once, and waits until it is gone. A process
// that has ended already is fine.
func (i Identity) Kill(deadline time.Duration) error {
	if !i.Running() {
		return nil
	}
	// It leads a session, so that the group has its pid (see Start).
	if err := syscall.Kill(-i.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing the process group %d: %w", i.PID, err)
	}
	const every = 5 * time.Millisecond
	for end := time.Now().Add(deadline); i.Running(); time.Sleep(every) {
		if time.Now().After(end) {
			return fmt.Errorf("process %d is still there %s after it was killed", i.PID, deadline)
		}
	}
	return nil
}
