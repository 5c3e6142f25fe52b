package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var soakTime = flag.Duration("soak", 3*time.Second, "how long TestSoak keeps its load up")

// TestSoak sends requests of both classes from twelve clients; a fifth of the requests are
// canceled. Every greedy answer must equal the one its prompt gets alone, nothing may be computed
// twice while KV blocks are free, and between loads memory, goroutines and descriptors must return
// to their values after the warm-up.
func TestSoak(t *testing.T) {
	s := startServe(t)
	load := newSoakLoad(t, s)
	load.run(*soakTime / 10)
	start := load.size(nil)
	load.run(*soakTime / 2)
	middle := load.size(&start)
	load.run(*soakTime / 2)
	for range 100 { // on a slow machine, until some client has hung up in an answer
		if load.whole.Load() > 0 && load.begun.Load() > 0 {
			break
		}
		load.run(*soakTime / 2)
	}
	end := load.size(&start)
	t.Logf("start:  %v", start)
	t.Logf("middle: %v", middle)
	t.Logf("end:    %v", end)
	t.Logf("%d whole answers equal, %d beginnings of hung-up ones, %d aborted before their first token",
		load.whole.Load(), load.begun.Load(), load.aborted.Load())
	for _, f := range []processSize{middle, end} {
		// The first minutes fill the heap up to where the collector holds it.
		if f.rss > start.rss+start.rss/4 || f.leaks(&start) {
			t.Errorf("grew from %v to %v", start, f)
		}
	}
	if end.rss > middle.rss+middle.rss/10 {
		t.Errorf("memory still grows: %v, then %v", middle, end)
	}
	if end.preempted != 0 || end.recomputed != 0 {
		t.Errorf("%d sequences lost their blocks and %d tokens were computed again, though blocks were free",
			end.preempted, end.recomputed)
	}
	if load.whole.Load() == 0 || load.begun.Load() == 0 {
		t.Error("no client read to the end, or none hung up: the test tests nothing")
	}
	s.stop()
}

// run keeps the clients up for a while and returns when the last one is gone.
func (l *soakLoad) run(d time.Duration) {
	until := time.Now().Add(d)
	var clients sync.WaitGroup
	for range soakClients {
		l.seed++
		rng := rand.New(rand.NewPCG(l.seed, 11))
		clients.Go(func() {
			for time.Now().Before(until) && !l.t.Failed() {
				l.ask(rng)
			}
		})
	}
	clients.Wait()
	l.http.CloseIdleConnections()
}

// processSize holds the resources of an idle server and its counters.
type processSize struct {
	requests, evicted, preempted, recomputed int
	rss                                      int // bytes
	goroutines, files                        int
}

func (f processSize) String() string {
	return fmt.Sprintf("%d requests, %d evictions, %d preemptions, %d tokens computed again, "+
		"RSS %.1f MiB, %d goroutines, %d descriptors",
		f.requests, f.evicted, f.preempted, f.recomputed, float64(f.rss)/(1<<20), f.goroutines, f.files)
}

// leaks reports whether the process has more goroutines or descriptors than before, but for one or
// two. One more is no leak; one more for every hundred requests is.
func (f *processSize) leaks(before *processSize) bool {
	return f.goroutines > before.goroutines+2 || f.files > before.files+2
}

// size waits until the server is idle. The server closes the connections of its clients a moment
// later, so that size waits until two results agree and, up to two minutes, until the process has
// no more goroutines and descriptors than before; nil: unknown.
func (l *soakLoad) size(before *processSize) processSize {
	l.t.Helper()
	var last processSize
	idle := false
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		_, text, _ := l.server.do("GET", "/metrics", "", "")
		l.http.CloseIdleConnections()
		f := l.look(text)
		busy := metric(l.t, text, "engine_running") + metric(l.t, text, "engine_waiting") +
			metric(l.t, text, "http_requests_in_flight") + metric(l.t, text, "kv_blocks") - metric(l.t, text,
			"kv_blocks_free")
		idle = busy == 0 && f.goroutines == last.goroutines && f.files == last.files
		if last = f; idle && (before == nil || !f.leaks(before)) {
			return f
		}
	}
	if !idle {
		l.t.Fatalf("the server is not idle two minutes after its last client: %v", last)
	}
	return last
}

func (l *soakLoad) look(metrics string) processSize {
	l.t.Helper()
	proc := fmt.Sprintf("/proc/%d", l.server.cmd.Process.Pid)
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		l.t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		l.t.Fatal(err)
	}
	_, rss, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rss)[0])
	if err != nil {
		l.t.Fatal(err)
	}
	return processSize{
		requests:   metric(l.t, metrics, "engine_requests_total"),
		evicted:    metric(l.t, metrics, "engine_evictions_total"),
		preempted:  metric(l.t, metrics, "engine_preemptions_total"),
		recomputed: metric(l.t, metrics, "engine_recomputed_tokens_total"),
		rss:        kib << 10,
		goroutines: metric(l.t, metrics, "go_goroutines"),
		files:      len(files),
	}
}

// metric returns the sum of a metric over its labels.
func metric(t *testing.T, text, name string) (sum int) {
	t.Helper()
	found := regexp.MustCompile(`(?m)^(?:sandwich_)?`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1)
	if found == nil {
		t.Fatalf("no metric %s in %s", name, text)
	}
	for _, m := range found {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += int(v)
	}
	return sum
}
