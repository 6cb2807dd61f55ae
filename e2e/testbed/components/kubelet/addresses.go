package kubelet

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

// pool gives each owner one address out of a range. An address that was given back comes up again
// only after all others: whoever still remembers it should not find somebody else behind it.
type pool struct {
	addresses shape.Range

	mu      sync.Mutex
	next    netip.Addr
	byOwner map[string]netip.Addr
	taken   map[netip.Addr]bool
}

func newPool(addresses shape.Range) *pool {
	return &pool{
		addresses: addresses,
		next:      addresses.First,
		byOwner:   make(map[string]netip.Addr),
		taken:     make(map[netip.Addr]bool),
	}
}

// take returns the owner's address, a free one if it has none yet.
func (p *pool) take(owner string) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address, has := p.byOwner[owner]; has {
		return address, nil
	}
	start := p.next
	for {
		address := p.next
		p.next = p.following(address)
		if !p.taken[address] {
			p.note(owner, address)
			return address, nil
		}
		if p.next == start {
			return netip.Addr{}, fmt.Errorf("all addresses from %s to %s are taken", p.addresses.First, p.addresses.Last)
		}
	}
}

// hold notes that the owner has this address already.
func (p *pool) hold(owner string, address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(owner, address)
}

func (p *pool) note(owner string, address netip.Addr) {
	p.byOwner[owner] = address
	p.taken[address] = true
}

// release gives the owner's address back, if it has one.
func (p *pool) release(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, p.byOwner[owner])
	delete(p.byOwner, owner)
}

func (p *pool) following(address netip.Addr) netip.Addr {
	if address == p.addresses.Last {
		return p.addresses.First
	}
	return address.Next()
}
