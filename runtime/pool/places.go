package pool

import "slices"

// Places is where the system lets the pool's threads run at present. A cpuset that shrinks, a PU
// that goes offline or an administrator can change that at any time.
type Places struct {
	Allowed []int // PUs the process may use, ascending
	Lost    []int // workers (indices) whose PU is not among them, or whose thread is no longer bound to it
}

// Places asks the system, and binds workers again whose PU came back. It may be called at any time,
// also during a run. Without pinning there is nothing to lose: Lost is then empty.
func (p *Pool) Places() (Places, error) {
	allowed, err := processPUs()
	if err != nil || !p.pinned {
		return Places{Allowed: allowed}, err
	}
	out := Places{Allowed: allowed}
	for _, w := range p.workers {
		thread := int(w.thread.Load())
		now, err := threadPUs(thread)
		if err != nil {
			return out, err
		}
		may := slices.Contains(allowed, w.pu)
		bound := slices.Equal(now, []int{w.pu})
		if may && !bound {
			bound = pinThread(thread, w.pu) == nil
		}
		if !may || !bound {
			out.Lost = append(out.Lost, w.index)
		}
	}
	return out, nil
}
