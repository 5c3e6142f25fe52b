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

// TestChoose checks the order in which connections are displaced.
func TestChoose(t *testing.T) {
	now := time.Now()
	type given struct {
		client      string
		state       int
		used        bool
		age, silent time.Duration // since the state and since the last bytes
		covered     time.Duration
	}
	body := func(client string, age, silent, covered time.Duration) given {
		return given{client, stateBody, true, age, silent, covered}
	}
	for _, c := range []struct {
		name  string
		crowd int
		conns []given
		want  int // index of the displaced connection; -1: none
	}{
		{"none", 0, nil, -1},
		{"busy", 0, []given{{"a", stateBusy, true, time.Hour, time.Hour, 0}}, -1},
		{"idle before all", 0, []given{body("a", time.Hour, time.Hour, -1), {"b", stateIdle, true, 0, 0, 0}}, 1},
		{"stalled before fresh", 0, []given{{"a", stateHeader, false, 0, 0, 0}, body("a", time.Hour, 0, -1)}, 1},
		{"the one without progress for longest", 0, []given{body("a", time.Hour, time.Second, -1),
			body("a", time.Minute, time.Minute, -1), body("a", time.Hour, 0, -1)}, 1},
		{"of the client with most", 0, []given{body("a", time.Minute, time.Minute, -1), body("b", 2*patience, 0, -1),
			body("b", 2*patience, patience, -1)}, 2},
		{"proven", 0, []given{body("a", time.Minute, 0, 1)}, -1},
		{"unproven of a larger client", 1, []given{body("a", 0, 0, 1), body("a", 0, 0, 1)}, 0},
		{"unproven of a client as large", 2, []given{body("a", 0, 0, 1), body("a", 0, 0, 1)}, -1},
		{"fresh before unproven", 0, []given{body("a", 0, 0, 1), body("b", 0, 0, -1)}, 1},
	} {
		var q queues
		clients := map[string]*client{}
		var conns []*Conn
		for _, g := range c.conns {
			if clients[g.client] == nil {
				clients[g.client] = &client{}
			}
			clients[g.client].open++
			conn := &Conn{client: clients[g.client], state: g.state, used: g.used, began: now.Add(-g.age),
				since: now.Add(-g.silent), covered: now.Add(g.covered)}
			conns = append(conns, conn)
			if g.state != stateBusy {
				q[g.state].PushBack(conn)
			}
		}
		var want *Conn
		if c.want >= 0 {
			want = conns[c.want]
		}
		if got := q.choose(now, c.crowd); got != want {
			t.Errorf("%s: %+v gives way, want %+v", c.name, got, want)
		}
	}
}

// TestDescriptorsBoundTable checks that a table is no larger than the process can serve.
func TestDescriptorsBoundTable(t *testing.T) {
	free, known := freeDescriptors()
	if !known {
		t.Skip("the limit of descriptors is unknown: needs Linux with /proc mounted")
	}
	o := Options{Most: 10 * (free + 1), MostClient: 5 * (free + 1)}
	table := New(o)
	if limit := table.Most(); limit > free || limit < free/4 || table.options.MostClient > limit/2+1 {
		t.Errorf("%d free descriptors, %d connections, %d of a client", free, limit, table.options.MostClient)
	}
	if small := New(Options{Most: 2, MostClient: 1}); small.Most() != 2 || small.options.MostClient != 1 {
		t.Errorf("a small table has %+v", small.options)
	}
}
