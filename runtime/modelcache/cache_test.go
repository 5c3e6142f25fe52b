package modelcache

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/generation"
)

// fake is the source of a model whose load waits for step, unless nil, and fails with err.
type fake struct {
	need  int64
	step  chan struct{}
	err   error
	began chan struct{} // if not nil, receives a value at the start of each load

	loaded atomic.Int64 // instances that exist
	loads  atomic.Int64
	t      *testing.T
}

// instance is a loaded fake.
type instance struct {
	generation.Generator
	of     *fake
	closed atomic.Bool
}

func (f *fake) Open(context.Context) (Opened, error) { return f, nil }
func (f *fake) Need() Memory                         { return Memory{0: f.need} }
func (f *fake) Close()                               {}

func (f *fake) Load(ctx context.Context, progress func(float64)) (Instance, error) {
	f.loads.Add(1)
	if f.began != nil {
		f.began <- struct{}{}
	}
	progress(.5)
	if f.step != nil {
		select {
		case <-f.step:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	if f.loaded.Add(1) != 1 {
		f.t.Error("a model is loaded twice")
	}
	return &instance{of: f}, nil
}

func (i *instance) Ready() error { return nil }
func (i *instance) Used() Memory { return i.of.Need() }
func (i *instance) Close() {
	if i.closed.Swap(true) {
		i.of.t.Error("a model is closed twice")
	}
	i.of.loaded.Add(-1)
}

// open returns a cache whose memory never exceeds its budget.
func open(t *testing.T, total int64, limit int) *Cache {
	c := New(Budget{Total: total}, limit, func(used Memory) {
		if n := used.Total(); n > total || n < 0 {
			t.Errorf("%d bytes are in use, the budget is %d", n, total)
		}
	})
	t.Cleanup(func() {
		c.Close()
		if n := c.Counts().Used; n != 0 {
			t.Errorf("%d bytes are in use at the end", n)
		}
	})
	return c
}

func use(t *testing.T, e *Entry) (release func()) {
	t.Helper()
	_, release, err := e.Acquire(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// TestLeastRecentUse checks which models are unloaded to make room.
func TestLeastRecentUse(t *testing.T) {
	c := open(t, 30, 4)
	var e []*Entry
	for range 4 {
		e = append(e, c.Add(&fake{need: 10, t: t}, false))
	}
	pinned := c.Add(&fake{need: 5, t: t}, true)
	use(t, pinned)()
	use(t, e[0])()
	use(t, e[1])()
	use(t, e[0])()
	use(t, e[2])() // there is room for two
	for i, want := range []string{"loaded", "unloaded", "loaded", "unloaded"} {
		if got := e[i].State(); got != want {
			t.Errorf("model %d is %s, want %s", i, got, want)
		}
	}
	if pinned.State() != "loaded" {
		t.Error("the pinned model was unloaded")
	}
	if n := c.Counts(); n.Loads != 4 || n.Unloads != 1 || n.Used != 25 {
		t.Errorf("%+v", n)
	}
}

// TestWaitsForUsers checks that a load waits for the users of the models that it displaces, that
// these models accept no further requests meanwhile, and that both are served in the end.
func TestWaitsForUsers(t *testing.T) {
	c := open(t, 10, 4)
	a, b := &fake{need: 10, t: t}, &fake{need: 10, t: t}
	first, second := c.Add(a, false), c.Add(b, false)
	release := use(t, first)
	var all sync.WaitGroup
	all.Go(func() { use(t, second)() })
	for { // until the load of the second model drains the first
		c.mu.Lock()
		draining := first.draining
		c.mu.Unlock()
		if draining {
			break
		}
		runtime.Gosched()
	}
	all.Go(func() { use(t, first)() })
	if second.State() != "loading" || b.loads.Load() != 0 {
		t.Errorf("the second model is %s with %d loads while the first has a user", second.State(), b.loads.Load())
	}
	release()
	all.Wait()
	if a.loads.Load() > 2 || b.loads.Load() != 1 {
		t.Errorf("%d and %d loads", a.loads.Load(), b.loads.Load())
	}
}

// TestQueue checks the bound of requests that wait for a load, the progress that they see, and that
// the load ends when the last one leaves, but not before.
func TestQueue(t *testing.T) {
	c := open(t, 10, 2)
	f := &fake{need: 10, t: t, step: make(chan struct{}), began: make(chan struct{}, 9)}
	e := c.Add(f, false)
	one, leaveOne := context.WithCancelCause(t.Context())
	two, leaveTwo := context.WithCancelCause(t.Context())
	ended := make(chan error, 2)
	half := make(chan struct{}, 99)
	for _, ctx := range []context.Context{one, two} {
		go func() {
			_, _, err := e.Acquire(ctx, func(share float64) {
				if share == .5 {
					half <- struct{}{}
				}
			})
			ended <- err
		}()
	}
	<-f.began
	<-half
	waiting := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e.load == nil {
			return 0
		}
		return e.load.waiting
	}
	for waiting() < 2 {
		runtime.Gosched()
	}
	var full *api.QueueFullError
	if _, _, err := e.Acquire(t.Context(), nil); !errors.As(err, &full) || full.RetryAfter <= 0 {
		t.Errorf("a third request: %v", err)
	}
	left := errors.New("left")
	leaveOne(left)
	if err := <-ended; err != left {
		t.Errorf("the first request: %v", err)
	}
	if e.State() != "loading" {
		t.Error("the load ended although a request waits")
	}
	leaveTwo(left)
	if err := <-ended; err != left {
		t.Errorf("the second request: %v", err)
	}
	close(f.step)
	use(t, e)() // a new load, or the old one if it was complete
	if f.loaded.Load() != 1 {
		t.Errorf("%d instances", f.loaded.Load())
	}
}

// TestRefusals checks loads that fail, and requests for removed models.
func TestRefusals(t *testing.T) {
	c := open(t, 10, 2)
	broken, huge := c.Add(&fake{need: 1, t: t, err: errors.New("damaged")}, false), c.Add(&fake{need: 11, t: t}, false)
	pinned, other := c.Add(&fake{need: 6, t: t}, true), c.Add(&fake{need: 5, t: t}, false)
	if _, _, err := broken.Acquire(t.Context(), nil); err == nil || err.Error() != "damaged" {
		t.Error(err)
	}
	if _, _, err := huge.Acquire(t.Context(), nil); err == nil {
		t.Error("a model above the budget is loaded")
	}
	release := use(t, pinned)
	if _, _, err := other.Acquire(t.Context(), nil); err == nil {
		t.Error("a model that does not fit next to a pinned one is loaded")
	}
	pinned.Retire()
	if _, _, err := pinned.Acquire(t.Context(), nil); !errors.Is(err, api.ErrClosed) {
		t.Errorf("a removed model: %v", err)
	}
	if n := c.Counts().Used; n != 6 {
		t.Errorf("%d bytes are in use while a removed model has a user", n)
	}
	release()
	use(t, other)()
	if n := c.Counts(); n.Failed != 3 || n.Used != 5 {
		t.Errorf("%+v", n)
	}
}

// TestNodes checks that a budget holds for each NUMA node.
func TestNodes(t *testing.T) {
	b := Budget{Total: 20, Nodes: Memory{0: 8, 1: 12}}
	for _, c := range []struct {
		need Memory
		fits bool
	}{
		{Memory{0: 8, 1: 12}, true}, {Memory{0: 9}, false}, {Memory{1: 13}, false}, {Memory{-1: 20}, true},
		{Memory{-1: 21}, false}, {Memory{0: 1, 2: 19}, true}, {Memory{0: 8, 1: 12, -1: 1}, false},
	} {
		if err := b.Check(c.need); (err == nil) != c.fits {
			t.Errorf("%v: %v", c.need, err)
		}
	}
}

// TestManyRequests runs many requests on more models than fit, some of which leave early, while
// models are removed and added, and checks the budget.
func TestManyRequests(t *testing.T) {
	c := open(t, 25, 64)
	var mu sync.Mutex
	var entries []*Entry
	add := func() *Entry { return c.Add(&fake{need: 3 + rand.Int64N(8), t: t}, false) }
	for range 5 {
		entries = append(entries, add())
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for range 150 {
				mu.Lock()
				at := rng.IntN(len(entries))
				e := entries[at]
				if rng.IntN(40) == 0 {
					entries[at] = add()
					defer e.Retire()
				}
				mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(10) == 0 {
					go cancel()
				}
				got, release, err := e.Acquire(ctx, func(float64) {})
				if err == nil {
					if got.(*instance).closed.Load() {
						t.Error("a model in use is unloaded")
					}
					release()
					release() // has no effect
				} else if !errors.Is(err, context.Canceled) && !errors.Is(err, api.ErrClosed) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
