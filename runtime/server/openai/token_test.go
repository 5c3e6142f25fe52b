package openai

import (
	"net/http"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"
)

// sink is a connection that accepts everything.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header { return s.header }

func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func (s *sink) WriteHeader(int) {}

func (s *sink) Flush() {}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

func tokenWriter(logprobs bool) (func() error, *exchange.Stream) {
	c := &request.Call{Stream: true, N: 1}
	c.Logprobs = logprobs
	s := exchange.NewStream(exchange.NewAnswer("tales-6m", true), &sink{http.Header{}}, 10*time.Second)
	w := newChunked(s, c)
	t := api.Token{Text: " token"}
	if logprobs {
		t.Piece, t.Logprob, t.Top = t.Text, -1, make([]api.TokenLogprob, 5)
	}
	return func() error { return w.Token(0, t) }, s
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
		s.Close()
	}
}

// BenchmarkToken measures the server's time for one streamed token, without system calls.
func BenchmarkToken(b *testing.B) {
	for name, logprobs := range map[string]bool{"plain": false, "logprobs": true} {
		b.Run(name, func(b *testing.B) {
			write, s := tokenWriter(logprobs)
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
