package conntable

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// sender is a connection whose client sends pieces of some bytes at equal intervals, without end.
type sender struct {
	net.Conn
	every    time.Duration
	bytes    int
	deadline time.Time
	closed   bool // CloseWrite was called
}

func (s *sender) Read(p []byte) (int, error) {
	if time.Sleep(s.every); time.Now().After(s.deadline) {
		return 0, io.ErrUnexpectedEOF
	}
	return min(s.bytes, len(p)), nil
}

func (s *sender) SetReadDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *sender) CloseWrite() error {
	s.closed = true
	return nil
}

// TestLinger checks how long a refused client may send: a client that sends too slowly for
// lingerTime, others up to maxLinger or lingerBytes.
func TestLinger(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		bytes int
		want  time.Duration
	}{
		"slow":    {100 * time.Millisecond, 1, lingerTime},
		"fast":    {100 * time.Millisecond, 4 << 10, maxLinger},
		"fastest": {200 * time.Microsecond, 8 << 10, lingerBytes / (8 << 10) * 200 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			table := New(Options{Most: 2, MostClient: 2})
			client := &sender{every: c.every, bytes: c.bytes}
			conn, _, _ := table.add(&addressed{client}, false)
			begun := time.Now()
			if err := conn.CloseWrite(); err != nil || !client.closed {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took < c.want || took > c.want+500*time.Millisecond {
				t.Errorf("%s: the server discards for %v, want %v", name, took, c.want)
			}
		})
	}
}

// addressed gives a sender an address.
type addressed struct{ *sender }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

// TestRefusalIsBounded checks that a refused client that neither reads nor sends is disconnected,
// with and without TLS.
func TestRefusalIsBounded(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			table := New(Options{Most: 2, MostClient: 2, Refusal: func(string) []byte { return []byte("no") }})
			client, server := net.Pipe()
			if secure {
				server = tls.Server(server, &tls.Config{})
			}
			table.refuse(server, "")
			time.Sleep(refusalTime - 1)
			if synctest.Wait(); len(table.refusals) != 1 {
				t.Errorf("TLS %v: the server did not wait", secure)
			}
			time.Sleep(6 * time.Second) // 5 s for the alert that ends TLS
			if synctest.Wait(); len(table.refusals) != 0 {
				t.Errorf("TLS %v: the client is connected after %v", secure, refusalTime)
			}
			client.Close()
		})
	}
}
