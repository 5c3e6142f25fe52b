package answer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/grammar"
)

// waiters waits until so many requests wait at a gate.
func waiters(g *gate, n int) {
	for {
		g.mu.Lock()
		have := len(g.waiting[0]) + len(g.waiting[1])
		g.mu.Unlock()
		if have == n {
			return
		}
	}
}

// TestGate checks that units go to reactive requests first and in each class in order of arrival,
// that requests that end return their units, and that unused units are reclaimed.
func TestGate(t *testing.T) {
	spare := int64(2)
	g := &gate{free: 3, reclaim: func() int64 { n := spare; spare = 0; return n }}
	for range 5 {
		if err := g.acquire(t.Context(), api.Proactive, 1); err != nil {
			t.Fatal(err)
		}
	}
	served, hold := make(chan string), make(chan struct{})
	var all sync.WaitGroup
	n := 0
	start := func(name string, class api.Class, units int64) context.CancelFunc {
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := g.acquire(ctx, class, units); err != nil {
				served <- name + " ended"
				return
			}
			served <- name
			<-hold
			g.release(units)
		})
		n++
		waiters(g, n)
		return cancel
	}
	start("background", api.Proactive, 1)
	start("large", api.Reactive, 4)
	gone := start("gone", api.Reactive, 5)
	start("small", api.Reactive, 1)
	gone()
	if got := <-served; got != "gone ended" {
		t.Errorf("served %s, want that the client that hung up ends", got)
	}
	g.release(1)
	waiters(g, 3) // a small request does not overtake a large one
	g.release(4)
	got := []string{<-served, <-served}
	slices.Sort(got)
	if !slices.Equal(got, []string{"large", "small"}) {
		t.Errorf("served %v, want the reactive requests", got)
	}
	waiters(g, 1)
	close(hold)
	if got := <-served; got != "background" {
		t.Errorf("served %s, want the proactive request", got)
	}
	all.Wait()
	if g.free != 5 {
		t.Errorf("%d units are free in the end, want 5", g.free)
	}
}

// hungry is a schema that exceeds the limits of a short compilation, greedy one that exceeds all
// limits.
const (
	hungry = `{"type":"integer","multipleOf":4093}`
	greedy = `{"type":"integer","multipleOf":4093,"minimum":-123456789012345,"maximum":987654321012345}`
)

// TestLanes checks that small schemas are compiled during a long compilation, that a schema gets
// the larger limits, and that one that exceeds them is refused and frees its memory.
func TestLanes(t *testing.T) {
	c := newCompilations()
	var begun sync.Once
	long, goOn := make(chan struct{}), make(chan struct{})
	run := func(schema string, hold bool) (*grammar.Grammar, int64, error) {
		tries := 0
		return c.run(t.Context(), source{compile: func(m *grammar.Meter) (*grammar.Grammar, error) {
			if tries++; tries == 2 && hold {
				begun.Do(func() { close(long) })
				<-goOn
			}
			return m.FromSchema([]byte(schema))
		}, finish: func(*grammar.Grammar) {}})
	}
	var all sync.WaitGroup
	all.Go(func() {
		g, bytes, err := run(hungry, true)
		if err != nil {
			t.Error(err)
			return
		}
		if bytes < shortBytes {
			t.Errorf("a program of %d bytes: the test tests nothing", bytes)
		}
		c.drop(g, bytes)
	})
	<-long
	for range 3 * shortAtOnce {
		g, bytes, err := run(`{"type":"string"}`, false)
		if err != nil {
			t.Fatal(err)
		}
		c.drop(g, bytes)
	}
	close(goOn)
	all.Wait()
	_, _, err := run(greedy, false)
	var e *grammar.Error
	if !errors.As(err, &e) || !e.Limited() || !strings.Contains(err.Error(), "limit of 24 MiB") {
		t.Errorf("%v", err)
	}
	if c.short.free != shortAtOnce || c.long.free != longAtOnce || c.programs.free != programBytes {
		t.Errorf("%d and %d lanes and %d bytes are free", c.short.free, c.long.free, c.programs.free)
	}
}

// TestProgramsWait checks that a compilation waits for memory of programs until other requests end,
// that idle grammars are dropped, and that a canceled client stops waiting.
func TestProgramsWait(t *testing.T) {
	f := testCache(cacheBytes)
	f.work.programs.free = 512 << 10
	key := func(i int) grammarKey {
		return keyOf(&api.Request{MaxTokens: i, Format: api.Format{Text: string(rune('a' + i))}}, false)
	}
	take := func(ctx context.Context, i int) (*lease, error) {
		return f.take(ctx, key(i), specOf(`{"type":"object","properties":{"`+strings.Repeat("x", i+1)+`":{"type":"string"}}}`))
	}
	var inUse []*lease
	for i := 0; ; i++ {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			h, err := take(ctx, i)
			if err == nil {
				inUse = append(inUse, h)
			}
			done <- err
		}()
		waiting := func() bool {
			f.work.programs.mu.Lock()
			defer f.work.programs.mu.Unlock()
			return len(f.work.programs.waiting[api.Reactive]) > 0
		}
		for len(done) == 0 && !waiting() {
		}
		if len(done) > 0 {
			if err := <-done; err != nil || i > 100 {
				t.Fatalf("%d grammars in 512 KiB: %v", i, err)
			}
			cancel()
			continue
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		break
	}
	if len(inUse) == 0 {
		t.Fatal("no grammar fits: the test tests nothing")
	}
	waits := make(chan error, 1)
	go func() {
		h, err := take(t.Context(), 99)
		f.put(h)
		waits <- err
	}()
	waiters(&f.work.programs, 1)
	for _, h := range inUse { // become idle and are dropped
		f.put(h)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
}
