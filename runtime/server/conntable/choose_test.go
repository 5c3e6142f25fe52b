package conntable

import (
	"net"
	"testing"
	"time"
)

func TestTier(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name         string
		state        int
		used         bool
		age, covered time.Duration
		want         int
	}{
		{"answering", stateBusy, true, time.Hour, 0, tierKept},
		{"kept alive", stateIdle, true, 0, 0, tierIdle},
		{"silent", stateIdle, false, patience, 0, tierIdle},
		{"just opened", stateIdle, false, patience / 2, 0, tierFresh},
		{"header", stateHeader, false, patience / 2, 0, tierFresh},
		{"slow header", stateHeader, false, patience, 0, tierStalled},
		{"slow header of a second request", stateHeader, true, patience, 0, tierStalled},
		{"discarded body", stateLingers, true, patience, bodyCredit, tierStalled},
		{"new body", stateBody, true, patience / 2, -1, tierFresh},
		{"slow body", stateBody, true, patience, -1, tierStalled},
		{"fast new body", stateBody, true, patience, 1, tierUnproven},
		{"fast body", stateBody, true, bodyCredit, 1, tierKept},
	} {
		conn := &Conn{state: c.state, used: c.used, began: now.Add(-c.age), covered: now.Add(c.covered)}
		if got := conn.tier(now); got != c.want {
			t.Errorf("%s: tier %d, want %d", c.name, got, c.want)
		}
	}
}

func TestClientOf(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "::1": "::/64",
	} {
		if got := clientOf(&net.TCPAddr{IP: net.ParseIP(addr), Port: 7}); got.String() != want {
			t.Errorf("%s is the client %s, want %s", addr, got, want)
		}
	}
	if clientOf(&net.UnixAddr{Name: "x"}).IsValid() {
		t.Error("a socket without an address belongs to one client")
	}
}
