// Package bed keeps the records of the test beds that are up.
package bed

import (
	"fmt"
	"regexp"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// Bed is a test bed: several independent clusters that go up and down together.
type Bed struct {
	Name      string    `json:"name"`
	Directory string    `json:"directory"`
	Created   time.Time `json:"created"`
	// Launcher is the process that starts the test bed, and ends when all is ready.
	Launcher process.Identity `json:"launcher"`
	Clusters []Cluster        `json:"clusters"`
}

// Cluster is one cluster of a test bed.
type Cluster struct {
	Index      int         `json:"index"`
	Name       string      `json:"name"`
	Kubeconfig string      `json:"kubeconfig"`
	Components []Component `json:"components"`
}

// Component is one process of a cluster.
type Component struct {
	Name string `json:"name"`
	Log  string `json:"log"`
	// Ports that the component listens on; the first is the one that clients use.
	Ports []int `json:"ports,omitempty"`
	// Command is what it is started with, also when it is started again.
	Command process.Command `json:"command"`
	// Process is missing for as long as the component has not been started, or has been stopped.
	Process *process.Identity `json:"process,omitempty"`
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName says what is wrong with the name of a test bed, which is also the name of a file.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q cannot name a test bed: use 1 to 40 lower-case letters, digits and hyphens", name)
	}
	return nil
}

// Cluster returns the cluster with this index.
func (b *Bed) Cluster(index int) (*Cluster, error) {
	if index < 1 || index > len(b.Clusters) {
		return nil, fmt.Errorf("test bed %s has no cluster %d: its clusters are 1 to %d", b.Name, index, len(b.Clusters))
	}
	return &b.Clusters[index-1], nil
}

// Component returns the component of this name, nil if there is none.
func (c *Cluster) Component(name string) *Component {
	for i := range c.Components {
		if c.Components[i].Name == name {
			return &c.Components[i]
		}
	}
	return nil
}

// Alive tells whether at least one process of the test bed is still there, or the one that starts it.
func (b *Bed) Alive() bool {
	if b.Launcher.Running() {
		return true
	}
	for _, cluster := range b.Clusters {
		for _, component := range cluster.Components {
			if component.Process != nil && component.Process.Running() {
				return true
			}
		}
	}
	return false
}
