package systemd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// supervisor receives messages of a Notifier.
func supervisor(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func receive(t *testing.T, c *net.UnixConn) []string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b[:n]), "\n")
}

// TestNotify checks the messages on a socket with a path and on one with an abstract name.
func TestNotify(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "s"), "@sandwich-test-" + strconv.Itoa(os.Getpid())} {
		c := supervisor(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		t.Setenv("WATCHDOG_USEC", "30000000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		n := TakeNotifier()
		if n.watchdog != 30*time.Second {
			t.Errorf("the watchdog has %v", n.watchdog)
		}
		for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
			if os.Getenv(name) != "" {
				t.Errorf("children inherit %s", name)
			}
		}
		for _, m := range []struct {
			send func()
			want []string
		}{
			{func() { n.Starting("loading: packing\nweights", time.Minute) },
				[]string{"STATUS=loading: packing weights", "EXTEND_TIMEOUT_USEC=60000000"}},
			{func() { n.Ready("serving m") }, []string{"READY=1", "STATUS=serving m"}},
			{func() { n.Stopping(time.Second) },
				[]string{"STOPPING=1", "STATUS=waiting for running requests", "EXTEND_TIMEOUT_USEC=1000000"}},
		} {
			m.send()
			if got := receive(t, c); !slices.Equal(got, m.want) {
				t.Errorf("%q, want %q", got, m.want)
			}
		}
		n.Reloading()
		if got := receive(t, c); got[0] != "RELOADING=1" || !strings.HasPrefix(got[1], "MONOTONIC_USEC=") ||
			got[1] == "MONOTONIC_USEC=0" {
			t.Errorf("%q", got)
		}
	}
}

// TestNoSupervisor checks that a Notifier without a supervisor, or whose supervisor is gone, does
// nothing.
func TestNoSupervisor(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	t.Setenv("WATCHDOG_USEC", "1000000")
	t.Setenv("WATCHDOG_PID", "1")
	other := TakeNotifier()
	if other.watchdog != 0 {
		t.Error("the watchdog is that of another process")
	}
	for _, n := range []*Notifier{nil, {}, other, TakeNotifier()} {
		n.Ready("x")
		n.Watch(context.Background(), nil) // returns
	}
	for _, text := range []string{"", "0", "-5", "many", "99999999999999999999"} {
		t.Setenv("WATCHDOG_USEC", text)
		t.Setenv("WATCHDOG_PID", "")
		if n := TakeNotifier(); n.watchdog != 0 {
			t.Errorf("WATCHDOG_USEC=%s: %v", text, n.watchdog)
		}
	}
}

// TestWatch passes a sequence of counts to watch and checks after which of them it sends a sign. A
// dash reports that there is no work.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		counts string
		want   string // x: a sign of life after that count
	}{
		"working":             {"1 2 3 4 5 6 7 8", "...x...x"},
		"idle":                {"- - - - - - - -", "...x...x"},
		"slow steps":          {"1 1 1 1 1 1 2 2 2 2 2", "...x...x..."},
		"a step that is late": {"1 2 3 4 4 4 4 4 4 5 5 5 6 6", "...x.....x...x"},
		"hung":                {"1 1 1 1 1 1 1 1 1 1 1 1", "...x........"},
		"hung at the start":   {"0 0 0 0 0 0 0 0", "...x...."},
	} {
		fields := strings.Fields(c.counts)
		ticks, next := make(chan time.Time), make(chan struct{})
		at, got := -1, []byte(strings.Repeat(".", len(fields)))
		ctx, cancel := context.WithCancel(t.Context())
		progress := func() (uint64, bool) {
			if at++; at == 0 {
				return 0, false
			}
			n, err := strconv.Atoi(fields[at-1])
			return uint64(max(n, 0)), err != nil
		}
		go func() {
			watch(ctx, ticks, progress, func() { got[at-1] = 'x' })
			close(next)
		}()
		for range fields {
			ticks <- time.Time{}
		}
		cancel()
		<-next
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
