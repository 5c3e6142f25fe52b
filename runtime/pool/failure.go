package pool

import (
	"errors"
	"fmt"
	"sync"
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

// errLeft unwinds a worker that finds out that its team continued without it.
var errLeft = errors.New("the worker was left out")
