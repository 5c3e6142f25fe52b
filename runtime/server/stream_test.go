package server

import (
	"net/http"
	"testing"
	"time"
)

// sink is a connection that takes everything.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func tokenWriter(logprobs bool) (func() error, *stream) {
	c := &call{stream: true}
	c.Logprobs = logprobs
	o := Options{}.withDefaults()
	s := newStream(newAnswer("tales-6m", true), &sink{http.Header{}}, c, &o)
	d := Delta{Text: " token"}
	if logprobs {
		d.Token = &TokenLogprob{Text: d.Text, Logprob: -1, Top: make([]TokenLogprob, 5)}
	}
	return func() error { return s.token(d) }, s
}

func TestTokenDoesNotAllocate(t *testing.T) {
	for _, logprobs := range []bool{false, true} {
		write, s := tokenWriter(logprobs)
		if got := testing.AllocsPerRun(200, func() {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("logprobs %v: %v allocations a token", logprobs, got)
		}
		s.close()
	}
}

// BenchmarkToken is the server's share of one streamed token, system calls of
// the connection left out.
func BenchmarkToken(b *testing.B) {
	for name, logprobs := range map[string]bool{"plain": false, "logprobs": true} {
		b.Run(name, func(b *testing.B) {
			write, s := tokenWriter(logprobs)
			defer s.close()
			b.ReportAllocs()
			for b.Loop() {
				if err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
