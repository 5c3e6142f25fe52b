package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// Places says where the system currently lets the pool's threads run. A cpuset that shrinks, a PU
// that goes offline or an administrator can change it at any time.
type Places struct {
	Allowed []int // PUs the process may use, ascending
	Lost    []int // workers (indices) whose PU is not among them, or whose thread is no longer bound to it
	At      []int // PU of each worker, whether it is lost or not
}

// Places queries the system, and binds workers again whose PU has become available. It may be
// called at any time, also during a run. Without pinning Lost is empty.
func (p *Pool) Places() (Places, error) {
	out := Places{}
	for _, w := range p.workers {
		out.At = append(out.At, w.PU())
	}
	allowed, err := sys.ProcessPUs()
	out.Allowed = allowed
	if err != nil || !p.pinned {
		return out, err
	}
	for i, w := range p.workers {
		pu, thread := out.At[i], int(w.thread.Load())
		now, err := sys.ThreadPUs(thread)
		if err != nil {
			return out, err
		}
		may := slices.Contains(allowed, pu)
		bound := slices.Equal(now, []int{pu})
		if may && !bound {
			bound = sys.Pin(thread, pu) == nil
		}
		if !may || !bound {
			out.Lost = append(out.Lost, w.index)
		}
	}
	return out, nil
}

// Move binds a worker to another PU. It may be called at any time, also during a run, but not
// concurrently with Places or another Move. After an error the worker is where it was.
func (p *Pool) Move(worker, pu int) error {
	if !p.pinned {
		return errors.New("the workers of this pool are not bound to PUs")
	}
	w := p.workers[worker]
	before := w.pu.Swap(int64(pu))
	if err := sys.Pin(int(w.thread.Load()), pu); err != nil {
		w.pu.Store(before)
		if back := sys.Pin(int(w.thread.Load()), int(before)); back != nil {
			err = fmt.Errorf("%w; it could not be bound to PU %d again: %w", err, before, back)
		}
		return err
	}
	return nil
}

// Wait is how long a worker ran since it was started, and how long it was runnable while another
// thread had its CPU.
type Wait struct{ Ran, Waited time.Duration }

// Waits returns the Wait of each worker, by worker index; nil if the kernel does not report it.
func (p *Pool) Waits() []Wait {
	out := make([]Wait, len(p.workers))
	for i, w := range p.workers {
		ran, waited, ok := sys.ThreadWait(int(w.thread.Load()))
		if !ok {
			return nil
		}
		out[i] = Wait{ran, waited}
	}
	return out
}
