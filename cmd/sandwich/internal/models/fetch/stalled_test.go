package fetch

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// inMemory serves a handler until the test ends and returns a client of it. Both wait on channels
// only, as virtual clocks need it.
func inMemory(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport, server := &http.Transport{DialContext: p.dial}, &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- server.Serve(p) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-done
	})
	return &http.Client{Transport: transport}
}

// TestStalledServer checks that a connection on which nothing arrives is replaced, and that a
// server that never sends anything ends the download. Network and clock are virtual, so that a slow
// machine does not count as a stalled server.
func TestStalledServer(t *testing.T) {
	data := content(50_000)
	o := quick()
	o.Stall = 50 * time.Millisecond
	for _, always := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int64
			client := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
				if n := requests.Add(1); always || n%3 == 0 {
					<-r.Context().Done()
				} else {
					file(data, `"1"`)(&stalling{w, r, 20_000}, r)
				}
			})
			base := filepath.Join(t.TempDir(), "x")
			_, err := Get(t.Context(), client, File{Name: "m.gguf", URL: "http://localhost/x", Size: -1}, base, o)
			if always {
				if !errors.Is(err, errStalled) {
					t.Errorf("a server that never sends anything: %v", err)
				}
				return
			}
			if got, readErr := os.ReadFile(PartPath(base)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v, %v", len(got), err, readErr)
			}
		})
	}
}

// stalling sends nothing more after a number of bytes.
type stalling struct {
	http.ResponseWriter
	r    *http.Request
	left int
}

func (s *stalling) Write(p []byte) (int, error) {
	if len(p) > s.left {
		_, _ = s.ResponseWriter.Write(p[:s.left])
		s.ResponseWriter.(http.Flusher).Flush()
		<-s.r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	s.left -= len(p)
	return s.ResponseWriter.Write(p)
}
