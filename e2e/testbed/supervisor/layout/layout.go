// Package layout knows where things are in a checkout.
package layout

import (
	"errors"
	"os"
	"path/filepath"
)

// Checkout is the directory of a checkout.
type Checkout string

// FromEnvironment returns the checkout that hack/testbed runs in.
func FromEnvironment() (Checkout, error) {
	root := os.Getenv("FERROMESH_CHECKOUT")
	if root == "" {
		return "", errors.New("FERROMESH_CHECKOUT is not set: start this program through hack/testbed")
	}
	return Checkout(root), nil
}

// Source is the Go module that this program and the components are in.
func (c Checkout) Source() string { return filepath.Join(string(c), "e2e", "testbed") }

// IstioSource is the Go module of everything that comes from Istio.
func (c Checkout) IstioSource() string { return filepath.Join(c.Source(), "istio") }

// Cache holds what is built: one directory for each state of the sources.
func (c Checkout) Cache() string { return filepath.Join(string(c), "target", "testbed") }

// Programs holds links to what is built, for use by hand and by scripts.
func (c Checkout) Programs() string { return filepath.Join(c.Cache(), "bin") }

// Beds holds a record of each test bed that is up.
func (c Checkout) Beds() string { return filepath.Join(c.Cache(), "state") }
