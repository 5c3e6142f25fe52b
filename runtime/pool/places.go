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
	p.placing.Lock()
	defer p.placing.Unlock()
	out := Places{}
	for _, w := range p.workers {
		out.At = append(out.At, w.PU())
	}
	allowed, err := sys.ProcessPUs()
	out.Allowed = allowed
	if err != nil || !p.pinned {
		return out, err
	}
	for i := range p.workers {
		bound := slices.Contains(allowed, out.At[i])
		for _, w := range p.threads(i) {
			now, err := sys.ThreadPUs(int(w.thread.Load()))
			if err != nil {
				return out, err
			}
			if bound && !slices.Equal(now, []int{out.At[i]}) {
				bound = sys.Pin(int(w.thread.Load()), out.At[i]) == nil
			}
		}
		if !bound {
			out.Lost = append(out.Lost, i)
		}
	}
	return out, nil
}

// Move binds a worker to another PU. It may be called at any time, also during a run. After an
// error the worker is where it was.
func (p *Pool) Move(worker, pu int) error {
	if !p.pinned {
		return errors.New("the workers of this pool are not bound to PUs")
	}
	p.placing.Lock()
	defer p.placing.Unlock()
	list := p.threads(worker)
	before := p.workers[worker].PU()
	for i, w := range list {
		w.pu.Store(int64(pu))
		err := sys.Pin(int(w.thread.Load()), pu)
		if err == nil {
			continue
		}
		for _, w := range list[:i+1] {
			w.pu.Store(int64(before))
			if back := sys.Pin(int(w.thread.Load()), before); back != nil {
				err = fmt.Errorf("%w; it could not be bound to PU %d again: %w", err, before, back)
			}
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
	for i := range p.workers {
		for _, w := range p.threads(i) {
			ran, waited, ok := sys.ThreadWait(int(w.thread.Load()))
			if !ok {
				return nil
			}
			out[i].Ran += ran
			out[i].Waited += waited
		}
	}
	return out
}
