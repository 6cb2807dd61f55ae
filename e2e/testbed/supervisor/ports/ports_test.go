package ports

import (
	"net"
	"slices"
	"testing"
)

func TestTheFirstUsablePortsFromTheOffsetOnAreChosen(t *testing.T) {
	got, err := choose(3, 5, func(port int) bool { return port%2 == 0 })
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{first + 6, first + 8, first + 10}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheChoiceGoesAroundTheEndOfTheRange(t *testing.T) {
	got, err := choose(2, last-first, func(int) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{last, first}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTooFewFreePortsAreAnError(t *testing.T) {
	if got, err := choose(2, 0, func(port int) bool { return port == first }); err == nil {
		t.Errorf("got %v where only one port is free", got)
	}
}

func TestTakenPortsAndPortsInUseAreNotFree(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if port := listener.Addr().(*net.TCPAddr).Port; canListen(port) {
		t.Errorf("port %d is in use and counts as free", port)
	}

	taken := make(map[int]bool)
	for port := first; port <= last; port++ {
		taken[port] = true
	}
	if got, err := Free(1, taken); err == nil {
		t.Errorf("got %v where every port is taken", got)
	}
}
