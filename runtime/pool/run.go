package pool

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// errAborted unwinds the workers of a run in which another worker failed.
var errAborted = errors.New("another worker of the run failed")

// Panic is the value with which Run, Lead and Leader.Run panic if the function panicked on a
// worker. The pool stays usable.
type Panic struct {
	Value  any    // what the function panicked with; of several workers, the first one's
	Worker int    // index of the worker
	PU     int    // where it runs
	Stack  []byte // its stack at the time
}

// Error returns the worker, the value and the stack.
func (e *Panic) Error() string {
	return fmt.Sprintf("panic on worker %d (PU %d): %v\n\n%s", e.Worker, e.PU, e.Value, e.Stack)
}

// Unwrap returns the value if it is an error.
func (e *Panic) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// newPanic describes the result of recover; nil means that the goroutine is ending.
func (w *Worker) newPanic(value any) *Panic {
	if value == nil {
		value = errors.New("the function ended its goroutine with runtime.Goexit")
	}
	return &Panic{Value: value, Worker: w.index, PU: w.PU(), Stack: debug.Stack()}
}

// failure keeps the first panic of a run.
type failure struct {
	mu    sync.Mutex
	first *Panic
}

func (f *failure) set(e *Panic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = e
	}
}

// take returns the first panic and forgets it.
func (f *failure) take() *Panic {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.first
	f.first = nil
	return e
}

// Run executes fn on every active worker at once and returns when all have returned. It allocates
// nothing. If fn panics on a worker, the others are released from their barriers, and Run panics
// with a *Panic. It must not be called inside fn or Lead, which would deadlock.
func (p *Pool) Run(fn func(w *Worker)) { p.run(fn, false) }

func (p *Pool) run(fn func(w *Worker), tolerant bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mustBeOpen()
	began := p.now()
	p.dispatch(fn, -1, tolerant)
	p.await(&p.caller)
	if e := p.settle(began); e != nil {
		panic(e)
	}
}

func (p *Pool) mustBeOpen() {
	if p.closed {
		panic(ErrClosed)
	}
}

// dispatch starts fn on the active workers except the one with index self, which takes part by
// itself.
func (p *Pool) dispatch(fn func(*Worker), self int, tolerant bool) {
	p.fn = fn
	p.runs++
	p.mayTolerate = tolerant && len(p.team.active) > 1 && len(p.team.active) <= mostMembers
	p.tolerant = p.mayTolerate && p.atRisk()
	command := cmdRun
	if p.tolerant {
		command = cmdJoin
		p.team.membership.begin(p.tag >> localBits)
		p.pending.Store(runOpen)
	} else {
		p.pending.Store(int64(len(p.team.active)))
	}
	for _, index := range p.team.active {
		if index != self {
			p.workers[index].ring(command)
		}
	}
}

// execute runs fn as this worker's part of the run and counts it as finished however fn ends. A
// worker that was left out rejoins while the run continues.
func (w *Worker) execute(fn func(*Worker)) {
	if w.attempt(fn) {
		w.takePart()
	}
}

// takePart runs the worker's part of a run that workers may join, from the current step.
func (w *Worker) takePart() {
	for w.join() && w.attempt(w.pool.fn) {
	}
}

// fail records why fn did not return and releases the others. value is the result of recover.
func (w *Worker) fail(value any) {
	if value == errAborted {
		return
	}
	w.pool.failure.set(w.newPanic(value))
	w.pool.aborting.Store(true)
	w.team.abort()
	for _, f := range w.pool.flags {
		f.abort()
	}
}

// settle ends the run that began at the given time, after its last worker, and returns the panic
// that ended it early.
func (p *Pool) settle(began time.Duration) *Panic {
	p.fn = nil
	top := p.tag
	if p.tolerant {
		top = p.team.membership.phase() << localBits
		p.timed = false
	} else {
		for _, index := range p.team.active {
			top = max(top, p.workers[index].tag)
		}
	}
	p.tag = nextGlobal(top)
	if p.timed {
		p.timeSwitch(began)
	}
	if !p.aborting.Load() {
		return nil
	}
	p.team.reset()
	p.aborting.Store(false)
	return p.failure.take()
}
