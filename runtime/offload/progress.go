package offload

import (
	"errors"
	"sync"
)

// progress records how far one side of a wavefront is: which chunk, and which of its ops are
// complete. Its methods may be called concurrently.
type progress struct {
	mu      sync.Mutex
	changed *sync.Cond
	at      point
	failed  error
	paused  bool   // waits end with errPaused
	notify  func() // called after each change; nil: not
}

// point is the end of the ops before op of a chunk.
type point struct{ chunk, op int }

func (p point) before(o point) bool { return p.chunk < o.chunk || p.chunk == o.chunk && p.op < o.op }

func newProgress(notify func()) *progress {
	p := &progress{notify: notify}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// reach records that a point is reached.
func (p *progress) reach(at point) {
	p.mu.Lock()
	if p.at.before(at) {
		p.at = at
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	if p.notify != nil {
		p.notify()
	}
}

// fail makes all later calls of reached and wait return an error. The first one is kept.
func (p *progress) fail(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	if p.notify != nil {
		p.notify()
	}
}

// errPaused is the error of a wait that an interruption ended.
var errPaused = errors.New("the wavefront is paused")

// interrupt makes all waits return errPaused, or lets them wait again.
func (p *progress) interrupt(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = on
	p.changed.Broadcast()
}

// reached reports whether a point is reached.
func (p *progress) reached(at point) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.at.before(at), p.failed
}

// wait blocks until a point is reached, or returns errPaused if it is interrupted before.
func (p *progress) wait(at point) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.at.before(at) && p.failed == nil {
		if p.paused {
			return errPaused
		}
		p.changed.Wait()
	}
	return p.failed
}
