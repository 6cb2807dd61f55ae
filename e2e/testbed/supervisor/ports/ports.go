// Package ports finds free TCP ports.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that systems take the ports of outgoing connections from
// (32768 and up on Linux), so that none of those lands on a port between its choice and its use.
const (
	first = 20000
	last  = 29999
)

// Free returns count different ports of the loopback address that nobody listens on and that are
// not among taken (ports that somebody is about to use).
func Free(count int, taken map[int]bool) ([]int, error) {
	return choose(count, rand.IntN(last-first+1), func(port int) bool {
		return !taken[port] && canListen(port)
	})
}

// choose goes once around the range from offset on and returns the first usable ports.
func choose(count, offset int, usable func(port int) bool) ([]int, error) {
	const size = last - first + 1
	chosen := make([]int, 0, count)
	for step := range size {
		if len(chosen) == count {
			break
		}
		if port := first + (offset+step)%size; usable(port) {
			chosen = append(chosen, port)
		}
	}
	if len(chosen) < count {
		return nil, fmt.Errorf("only %d of %d ports are free between %d and %d", len(chosen), count, first, last)
	}
	return chosen, nil
}

func canListen(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
