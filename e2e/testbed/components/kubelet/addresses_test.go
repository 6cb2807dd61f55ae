package kubelet

import (
	"net/netip"
	"testing"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

func smallPool() *pool {
	return newPool(shape.Range{First: netip.MustParseAddr("10.1.0.1"), Last: netip.MustParseAddr("10.1.0.3")})
}

func take(t *testing.T, p *pool, owner string) string {
	t.Helper()
	address, err := p.take(owner)
	if err != nil {
		t.Fatalf("take(%q): %v", owner, err)
	}
	return address.String()
}

func TestAnOwnerKeepsItsAddress(t *testing.T) {
	p := smallPool()
	first := take(t, p, "a")
	take(t, p, "b")
	if again := take(t, p, "a"); again != first {
		t.Errorf("a had %s and now has %s", first, again)
	}
}

func TestAReleasedAddressComesUpAgainLast(t *testing.T) {
	p := smallPool()
	released := take(t, p, "a")
	p.release("a")
	if next := take(t, p, "b"); next == released {
		t.Errorf("b got %s, which a has only just given back", next)
	}
	take(t, p, "c")
	if last := take(t, p, "d"); last != released {
		t.Errorf("d got %s, want %s", last, released)
	}
}

func TestAnAddressHeldFromBeforeIsNotGivenOut(t *testing.T) {
	p := smallPool()
	p.hold("old", netip.MustParseAddr("10.1.0.1"))
	if got := take(t, p, "new"); got != "10.1.0.2" {
		t.Errorf("new got %s, want 10.1.0.2", got)
	}
}

func TestAnExhaustedPoolSaysSo(t *testing.T) {
	p := smallPool()
	for _, owner := range []string{"a", "b", "c"} {
		take(t, p, owner)
	}
	if address, err := p.take("d"); err == nil {
		t.Errorf("d got %s out of a pool of three that has three owners", address)
	}
}

func TestReleasingNothingChangesNothing(t *testing.T) {
	p := smallPool()
	p.release("nobody")
	if got := take(t, p, "a"); got != "10.1.0.1" {
		t.Errorf("a got %s, want 10.1.0.1", got)
	}
}
