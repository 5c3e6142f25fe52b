package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Places is where the system lets the pool's threads run at present. A cpuset that shrinks, a PU
// that goes offline or an administrator can change that at any time.
type Places struct {
	Allowed []int // PUs the process may use, ascending
	Lost    []int // workers (indices) whose PU is not among them, or whose thread is no longer bound to it
	At      []int // PU of each worker, whether it is lost or not
}

// Places asks the system, and binds workers again whose PU came back. It may be called at any time,
// also during a run. Without pinning there is nothing to lose: Lost is then empty.
func (p *Pool) Places() (Places, error) {
	out := Places{}
	for _, w := range p.workers {
		out.At = append(out.At, w.PU())
	}
	allowed, err := processPUs()
	out.Allowed = allowed
	if err != nil || !p.pinned {
		return out, err
	}
	for i, w := range p.workers {
		pu, thread := out.At[i], int(w.thread.Load())
		now, err := threadPUs(thread)
		if err != nil {
			return out, err
		}
		may := slices.Contains(allowed, pu)
		bound := slices.Equal(now, []int{pu})
		if may && !bound {
			bound = pinThread(thread, pu) == nil
		}
		if !may || !bound {
			out.Lost = append(out.Lost, w.index)
		}
	}
	return out, nil
}

// Move binds a worker to another PU. It may be called at any time, also during a run, but not
// together with Places or another Move. On an error the worker is where it was.
func (p *Pool) Move(worker, pu int) error {
	if !p.pinned {
		return errors.New("the workers of this pool are not bound to PUs")
	}
	w := p.workers[worker]
	before := w.pu.Swap(int64(pu))
	if err := pinThread(int(w.thread.Load()), pu); err != nil {
		w.pu.Store(before)
		if back := pinThread(int(w.thread.Load()), int(before)); back != nil {
			err = fmt.Errorf("%w; it could not be bound to PU %d again: %w", err, before, back)
		}
		return err
	}
	return nil
}

// Wait is how long a worker ran since it was started, and how long it could have run while another
// thread had its CPU.
type Wait struct{ Ran, Waited time.Duration }

// Waits returns the Wait of each worker, by worker index; nil where the kernel does not tell.
func (p *Pool) Waits() []Wait {
	out := make([]Wait, len(p.workers))
	for i, w := range p.workers {
		var ok bool
		if out[i], ok = threadWait(int(w.thread.Load())); !ok {
			return nil
		}
	}
	return out
}
