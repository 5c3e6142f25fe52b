//go:build unix

package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// crowdSize is the number of connections that a test may hold; both ends of each are in this
// process.
func crowdSize(t *testing.T, want int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		want /= 8
	}
	if bound := (int(limit.Cur) - 600) / 2; bound < want {
		t.Logf("%d connections instead of %d: only %d descriptors", bound, want, limit.Cur)
		return max(bound, 64)
	}
	return want
}

// patient has timeouts so long that a client that waits for another one to time out is never
// served.
var patient = Options{HeaderTimeout: time.Hour, BodyTimeout: time.Hour, WriteTimeout: time.Hour, IdleTimeout: time.Hour}

// probe requests /health many times, each time on a new connection, of a patient server. It logs
// the times: how long a request takes depends on the other processes of this machine.
func probe(t *testing.T, what, url string) {
	t.Helper()
	probeFrom(t, what, "127.0.0.1", url)
}

func probeFrom(t *testing.T, what, from, url string) {
	t.Helper()
	var times []time.Duration
	for range 400 {
		begun := time.Now()
		c := dialFrom(t, from, url)
		code := ask(t, c, getHealth, never)
		times = append(times, time.Since(begun))
		c.Close()
		if code != 200 {
			t.Fatalf("%s: status %d", what, code)
		}
	}
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
	t.Logf("%-34s P50 %v, P99 %v, P99.9 %v, most %v", what, at(.5), at(.99), at(.999), times[len(times)-1])
}

// crowded serves f on two listeners.
func crowded(t *testing.T, f *fake, o Options) (url, health string, srv *Server) {
	t.Helper()
	url, srv = start(t, f, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveHealth(t, ln, srv)
	return url, "http://" + ln.Addr().String(), srv
}

// Thousands of idle connections of one or many addresses do not lock out other clients.
func TestHealthDuringIdleConnections(t *testing.T) {
	url, health, _ := crowded(t, &fake{words: []string{"x"}}, patient)
	n := crowdSize(t, 4096)
	for i := range n {
		c := dialFrom(t, fmt.Sprintf("127.0.0.%d", 1+i%8), url)
		if i%2 == 0 {
			ask(t, c, getHealth, never) // keep-alive
		}
	}
	what := fmt.Sprintf("with %d idle connections", n)
	probe(t, what+", main listener", url)
	probe(t, what+", health listener", health)
}

// Thousands of clients that send their header byte by byte do not lock out other clients.
func TestHealthDuringSlowConnections(t *testing.T) {
	n := crowdSize(t, 2000)
	o := patient
	o.MaxConns, o.ClientConns = n, n
	url, health, _ := crowded(t, &fake{words: []string{"x"}}, o)
	slow := make([]net.Conn, n)
	for i := range slow {
		slow[i] = dial(t, url)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for _, c := range slow {
				_, _ = c.Write([]byte{("GET /" + strings.Repeat("x", 1<<16))[i]}) // fails after the server closed it
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	defer wg.Wait()
	defer stop()
	what := fmt.Sprintf("with %d slow connections", n)
	probe(t, what+", main listener", url)
	probe(t, what+", health listener", health)
}

// TestHealthDuringSlowBodies checks that thousands of connections of five addresses whose bodies do
// not arrive lock out neither a sixth address nor one of the five.
func TestHealthDuringSlowBodies(t *testing.T) {
	url, health, _ := crowded(t, &fake{words: []string{"x"}}, patient)
	n := crowdSize(t, 5120)
	attackers(t, func(from string) net.Conn { return dialFrom(t, from, url) }, n/5)
	for _, from := range []string{"127.0.0.7", "127.0.0.2"} {
		probeFrom(t, fmt.Sprintf("with %d slow bodies, from %s", n, from), from, url)
	}
	probe(t, fmt.Sprintf("with %d slow bodies, health listener", n), health)
}

// Clients that disconnect during a stream leave no resources behind.
func TestHealthAfterHangUps(t *testing.T) {
	f := &fake{words: strings.SplitAfter(strings.Repeat("word ", 100_000), " "), delay: 2 * time.Millisecond}
	n := crowdSize(t, 300)
	o := patient
	o.MaxConns, o.ClientConns = n+100, n+100
	url, health, srv := crowded(t, f, o)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			resp, err := send(t, ctx, url, chatStream)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
				t.Error(err)
			}
		})
	}
	probe(t, fmt.Sprintf("with %d hang-ups, main listener", n), url)
	wg.Wait()
	probe(t, fmt.Sprintf("after %d hang-ups, health listener", n), health)
	eventually(t, "every Generate is cancelled", func() bool {
		return f.cancels.Load() == int64(n) && f.running.Load() == 0
	})
	if held := srv.run.BodyMemory(); held != 0 {
		t.Errorf("%d bytes of bodies are still held", held)
	}
}

// The health listener serves /health and /metrics only and requires no key.
func TestHealthListener(t *testing.T) {
	_, health, _ := crowded(t, &fake{words: []string{"x"}}, Options{APIKeys: []string{"secret"}})
	for path, want := range map[string]int{"/health": 200, "/metrics": 200, "/v1/models": 404, "/": 404} {
		if code, text, _ := get(t, health+path); code != want {
			t.Errorf("%s: status %d %.100s, want %d", path, code, text, want)
		}
	}
}
