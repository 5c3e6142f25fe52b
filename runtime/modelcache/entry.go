package modelcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/generation"
)

// Entry is a model of a cache. Methods may be called concurrently.
type Entry struct {
	cache  *Cache
	source Source
	gone   chan struct{} // closed when the entry is retired and its model is not in memory

	// Fields below are guarded by Cache.mu.
	pinned   bool
	instance Instance // nil: the model is not loaded
	memory   Memory   // of instance
	users    int      // of instance
	last     int64    // number of the last use
	draining bool     // instance is unloaded when it has no users; further requests wait
	closing  bool     // instance is being unloaded
	retired  bool
	load     *load         // that requests wait for; nil: none
	loads    int           // running loads: load, and cancelled ones
	took     time.Duration // of the last load
}

// load is a load of a model and the requests that wait for it.
type load struct {
	done    chan struct{}
	cancel  context.CancelCauseFunc
	percent atomic.Int32

	// Guarded by Cache.mu.
	waiting int  // requests
	keep    bool // continue without requests
	began   bool // the model is read; before, other models load
	ended   bool
	err     error
	note    chan struct{} // closed when percent changes
}

// Add adds a model that Acquire loads. The model is not unloaded to make room if it is pinned.
func (c *Cache) Add(s Source, pinned bool) *Entry {
	e := &Entry{cache: c, source: s, pinned: pinned, gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, e)
	return e
}

// Pin says whether the model is pinned from now on.
func (e *Entry) Pin(pinned bool) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.pinned = pinned
	e.cache.broadcast()
}

// State returns the state of the model.
func (e *Entry) State() string {
	state, _ := e.Progress()
	return state
}

// Progress returns the state of the model and, while it loads, the completed share of the load, 0
// to 1.
func (e *Entry) Progress() (state string, share float64) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	switch {
	case e.instance != nil && !e.closing:
		return generation.StateLoaded, 0
	case e.load != nil:
		return generation.StateLoading, float64(e.load.percent.Load()) / 100
	}
	return generation.StateUnloaded, 0
}

// View calls fn with the instance of the model if it is loaded. It does not count as a use, but
// the model stays loaded meanwhile.
func (e *Entry) View(fn func(i Instance)) {
	c := e.cache
	c.mu.Lock()
	i := e.instance
	if i == nil || e.closing {
		c.mu.Unlock()
		return
	}
	e.users++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.leave()
	}()
	fn(i)
}

// Preload loads the model unless it is loaded. It does not wait for the load.
func (e *Entry) Preload() {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if e.instance == nil && !e.retired {
		e.startLoad().keep = true
	}
}

// Acquire returns the instance of the model, which stays loaded until release is called. It loads
// the model if necessary and calls progress, which may be nil, with the completed share of that. It
// returns *api.QueueFullError if too many requests wait, the error of the load, or the cause of
// ctx when ctx ends. A load without waiting requests is cancelled unless Preload was called.
func (e *Entry) Acquire(ctx context.Context, progress func(share float64)) (i Instance, release func(), err error) {
	c := e.cache
	c.mu.Lock()
	switch {
	case e.retired:
		c.mu.Unlock()
		return nil, nil, api.ErrClosed
	case e.instance != nil && !e.draining:
		defer c.mu.Unlock()
		e.use(1)
		return e.instance, sync.OnceFunc(e.release), nil
	}
	l := e.startLoad()
	if l.waiting >= c.limit {
		retry := max(e.took, defaultRetry)
		c.mu.Unlock()
		return nil, nil, &api.QueueFullError{RetryAfter: retry}
	}
	l.waiting++
	c.mu.Unlock()
	err = e.await(ctx, l, progress)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && l.err == nil:
		return e.instance, sync.OnceFunc(e.release), nil
	case err == nil:
		return nil, nil, l.err
	case !l.ended:
		if l.waiting--; l.waiting == 0 && !l.keep {
			l.cancel(err)
			if e.load == l {
				e.load = nil
			}
		}
	case l.err == nil: // the load ended at the same time
		e.leave()
	}
	return nil, nil, err
}

// await waits for the end of a load. It returns the cause of ctx if that ends before.
func (e *Entry) await(ctx context.Context, l *load, progress func(share float64)) error {
	for {
		e.cache.mu.Lock()
		note, began := l.note, l.began
		e.cache.mu.Unlock()
		if progress != nil && began {
			progress(float64(l.percent.Load()) / 100)
		}
		select {
		case <-l.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-note:
		}
	}
}

// release ends a use.
func (e *Entry) release() {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.last = e.cache.tick()
	e.leave()
}

// use adds users. Cache.mu is held.
func (e *Entry) use(n int) {
	e.users += n
	e.last = e.cache.tick()
}

// leave removes a user. Cache.mu is held.
func (e *Entry) leave() {
	if e.users--; e.users == 0 {
		e.cache.broadcast()
		e.settle()
	}
}

// Retire removes the model from the cache: further requests are refused, and the model is unloaded
// when it has no users.
func (e *Entry) Retire() {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if e.retired {
		return
	}
	e.retired = true
	if e.load != nil {
		e.load.cancel(api.ErrClosed)
	}
	e.settle()
}

// settle unloads a retired model that has no users. Cache.mu is held.
func (e *Entry) settle() {
	switch {
	case !e.retired || e.users > 0 || e.loads > 0 || e.closing:
	case e.instance != nil:
		e.closing = true
		go e.unload()
	default:
		e.cache.entries = slices.DeleteFunc(e.cache.entries, func(o *Entry) bool { return o == e })
		close(e.gone)
	}
}

// unload closes the instance. closing is set.
func (e *Entry) unload() {
	c := e.cache
	e.instance.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(nil, e.memory)
	c.counts.Unloads++
	e.instance, e.memory, e.draining, e.closing = nil, nil, false, false
	c.broadcast()
	e.settle()
}

// startLoad returns the running load of the model, or starts one. Cache.mu is held.
func (e *Entry) startLoad() *load {
	if e.load == nil {
		l := &load{done: make(chan struct{}), note: make(chan struct{})}
		var ctx context.Context
		ctx, l.cancel = context.WithCancelCause(context.Background())
		e.load = l
		e.loads++
		go e.run(ctx, l)
	}
	return e.load
}

// run loads the model after those that load already.
func (e *Entry) run(ctx context.Context, l *load) {
	c := e.cache
	defer l.cancel(nil)
	var err error
	select {
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
		began := time.Now()
		if err = e.loadNow(ctx, l); err == nil {
			defer func() { e.setTook(time.Since(began)) }()
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.ended, l.err = true, err
	if e.loads--; e.load == l {
		e.load = nil
	}
	if err == nil && l.waiting > 0 {
		e.use(l.waiting)
	}
	close(l.done)
	c.broadcast()
	e.settle()
}

func (e *Entry) setTook(d time.Duration) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.took = d
}

// loadNow loads the model, unless a drain was given up and it is still loaded.
func (e *Entry) loadNow(ctx context.Context, l *load) (err error) {
	c := e.cache
	c.mu.Lock()
	l.began = true
	for e.closing {
		changed := c.changed
		c.mu.Unlock()
		<-changed
		c.mu.Lock()
	}
	loaded := e.instance != nil
	c.mu.Unlock()
	if loaded {
		return nil
	}
	opened, err := e.source.Open(ctx)
	if err != nil {
		return e.failed(err)
	}
	need := opened.Need()
	if err := c.makeRoom(ctx, need); err != nil {
		opened.Close()
		return e.failed(err)
	}
	i, err := opened.Load(ctx, func(share float64) { e.report(l, share) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.account(nil, need)
		c.counts.Failed++
		return err
	}
	e.instance, e.memory = i, i.Used()
	c.account(e.memory, need)
	c.counts.Loads++
	e.last = c.tick()
	return nil
}

func (e *Entry) failed(err error) error {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.cache.counts.Failed++
	return err
}

// report publishes the progress of a load.
func (e *Entry) report(l *load, share float64) {
	p := int32(100 * share)
	for old := l.percent.Load(); p > old; old = l.percent.Load() {
		if !l.percent.CompareAndSwap(old, p) {
			continue
		}
		e.cache.mu.Lock()
		close(l.note)
		l.note = make(chan struct{})
		e.cache.mu.Unlock()
		return
	}
}
