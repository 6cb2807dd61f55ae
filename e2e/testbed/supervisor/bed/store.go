package bed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNone says that no test bed of the name is up.
var ErrNone = errors.New("no such test bed is up")

// Store is a directory with one record for each test bed that is up.
type Store struct {
	directory string
}

// Open returns the store in this directory, which is made if need be.
func Open(directory string) (Store, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return Store{}, fmt.Errorf("making the directory for records of test beds: %w", err)
	}
	return Store{directory}, nil
}

func (s Store) path(name string) string { return filepath.Join(s.directory, name+".json") }

// Load reads the record of a test bed; [ErrNone] if there is none.
func (s Store) Load(name string) (*Bed, error) {
	content, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("test bed %s: %w", name, ErrNone)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of test bed %s: %w", name, err)
	}
	var bed Bed
	if err := json.Unmarshal(content, &bed); err != nil {
		return nil, fmt.Errorf("reading the record %s: %w", s.path(name), err)
	}
	return &bed, nil
}

// Save writes the record of a test bed, in one step.
func (s Store) Save(bed *Bed) error {
	content, err := json.MarshalIndent(bed, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record of test bed %s: %w", bed.Name, err)
	}
	fresh := s.path(bed.Name) + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the record of test bed %s: %w", bed.Name, err)
	}
	if err := os.Rename(fresh, s.path(bed.Name)); err != nil {
		return fmt.Errorf("writing the record of test bed %s: %w", bed.Name, err)
	}
	return nil
}

// Remove removes the record of a test bed, if there is one.
func (s Store) Remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of test bed %s: %w", name, err)
	}
	return nil
}

// All reads the records of all test beds.
func (s Store) All() ([]*Bed, error) {
	entries, err := os.ReadDir(s.directory)
	if err != nil {
		return nil, fmt.Errorf("listing the records of test beds: %w", err)
	}
	var beds []*Bed
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord {
			continue
		}
		bed, err := s.Load(name)
		if errors.Is(err, ErrNone) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		beds = append(beds, bed)
	}
	return beds, nil
}

// Exclusively runs a function while no other process is in one: between choosing something that
// must be nobody else's (a name, ports) and writing it down.
func (s Store) Exclusively(run func() error) error {
	lock, err := os.OpenFile(filepath.Join(s.directory, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the lock of the test beds: %w", err)
	}
	defer lock.Close() // gives the lock back
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("taking the lock of the test beds: %w", err)
	}
	return run()
}

// TakenPorts are the ports of all test beds.
func TakenPorts(beds []*Bed) map[int]bool {
	taken := make(map[int]bool)
	for _, bed := range beds {
		for _, cluster := range bed.Clusters {
			for _, component := range cluster.Components {
				for _, port := range component.Ports {
					taken[port] = true
				}
			}
		}
	}
	return taken
}
