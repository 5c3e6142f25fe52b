package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// BenchmarkStreams measures the rate at which 32 clients on sockets receive tokens from a Generator
// without cost, including the clients' own reading.
func BenchmarkStreams(b *testing.B) {
	f := &fake{words: strings.SplitAfter(strings.Repeat("token ", 1000), " ")[:1000]}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- New(f, Options{}).Serve(ctx, ln) }()
	n := 0
	for b.Loop() {
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				resp, err := http.Post("http://"+ln.Addr().String()+"/v1/chat/completions", "application/json",
					strings.NewReader(chatStream))
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		wg.Wait()
		n += 32 * len(f.words)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tokens/s")
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
