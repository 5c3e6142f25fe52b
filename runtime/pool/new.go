package pool

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// defaultSpin is how long a waiting worker spins before it sleeps if Options.Spin is zero.
const defaultSpin = 50 * time.Microsecond

// Options configure New. The zero value is an unpinned pool with the default spin limit.
type Options struct {
	Spin time.Duration // longest spin of a waiting worker; 0 means defaultSpin, negative (NoSpin) none
	Pin  bool          // bind worker i to PU pus[i]; ignored, as Note reports, if the system does not
	// Class of each worker, which only callers interpret (exec: the worker kind); nil: class 0 for
	// all.
	Class []int
	// Slow throttles workers to test the division of work: after each chunk a worker waits until
	// the chunk has taken 1/Slow of its time. 0 or nil: no throttling.
	Slow []float64
}

// New starts one worker per entry of pus. With o.Pin it binds worker i to PU pus[i] and reads the
// binding back. A PU may appear more than once; workers then never spin, nor do they if there are
// more of them than CPUs that this process may use. GOMAXPROCS becomes len(pus)+2, and never less
// than an earlier pool needed, so that two goroutines can run while all workers spin. Errors name
// the PU that cannot be used and those that can.
func New(pus []int, o Options) (*Pool, error) {
	if len(pus) == 0 {
		return nil, errors.New("a worker pool needs at least one PU")
	}
	if o.Class != nil && len(o.Class) != len(pus) {
		return nil, fmt.Errorf("%d worker classes were given for %d PUs; give one for each", len(o.Class), len(pus))
	}
	allowed, err := sys.AllowedPUs()
	if err != nil {
		return nil, fmt.Errorf("reading the affinity mask of this process: %w", err)
	}
	p := &Pool{pus: slices.Clone(pus), begin: time.Now(), tag: nextGlobal(0)}
	if p.losses, err = readLosses(); err != nil {
		return nil, err
	}
	if o.Pin {
		if err := checkPUs(pus, allowed); err != nil {
			return nil, err
		}
		p.pinned = sys.AffinitySupported
		if !p.pinned {
			p.note = "workers are not pinned: " + runtime.GOOS + " has no affinity calls"
		}
	}
	spin, callerSpin := spinLimits(pus, len(allowed), o.Spin)
	p.caller.init(p, 0, callerSpin)
	reserveProcs(len(pus) + 2)
	for i := range pus {
		w := &Worker{index: i}
		if o.Class != nil {
			w.class = o.Class[i]
		}
		if o.Slow != nil {
			w.slow = o.Slow[i]
		}
		w.waiter.init(p, pus[i], spin)
		p.workers = append(p.workers, w)
		p.all = append(p.all, i)
	}
	p.first = p.workers[0]
	p.leader.p, p.leader.w = p, p.first
	if err := p.startWorkers(); err != nil {
		return nil, err
	}
	if err := p.setGroups(nil); err != nil {
		return nil, err
	}
	p.adopt(p.newTeam(p.all))
	return p, nil
}

// checkPUs returns an error for a PU that this process may not use.
func checkPUs(pus, allowed []int) error {
	if !sys.AffinitySupported {
		return nil
	}
	for _, pu := range pus {
		if !slices.Contains(allowed, pu) {
			return fmt.Errorf("PU %d is not among the PUs this process may use (%s); choose from those or widen "+
				"its cpuset", pu, sys.FormatSet(allowed))
		}
	}
	return nil
}

// spinLimits returns the spin limits of the workers and of the goroutine that waits in Run.
// Spinning on a CPU that another worker needs delays that worker, so a pool with more workers than
// CPUs never spins, and the caller spins only if a CPU is left for it.
func spinLimits(pus []int, allowed int, asked time.Duration) (worker, caller time.Duration) {
	spin := asked
	switch {
	case spin == 0:
		spin = defaultSpin
	case spin < 0:
		spin = 0
	}
	unique := slices.Clone(pus)
	slices.Sort(unique)
	unique = slices.Compact(unique)
	if len(unique) < len(pus) || len(pus) > allowed {
		return 0, 0
	}
	if allowed > len(unique) {
		return spin, spin
	}
	return spin, 0
}

var procs struct {
	sync.Mutex
	reserved int
}

// reserveProcs sets GOMAXPROCS to n; a later pool can only raise it. An explicit value also ends
// Go's own updates of it, each of which stops the world.
func reserveProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	if n > procs.reserved {
		procs.reserved = n
		runtime.GOMAXPROCS(n)
	}
}

// startWorkers starts the goroutines and waits until each is bound. If the system binds no threads,
// the workers are not pinned. After another error none is left.
func (p *Pool) startWorkers() error {
	ready := make(chan error, len(p.workers))
	p.exited.Add(len(p.workers))
	for _, w := range p.workers {
		go w.start(ready)
	}
	var first, unbound error
	for range p.workers {
		switch err := <-ready; {
		case errors.Is(err, sys.ErrNoAffinity):
			unbound = err
		case err != nil && first == nil:
			first = err
		}
	}
	if unbound != nil {
		p.pinned, p.note = false, fmt.Sprintf("workers are not pinned, which may reduce speed: %v; permit the system "+
			"call sched_setaffinity", unbound)
	}
	if first != nil {
		p.dismiss()
		return first
	}
	return nil
}

// dismiss makes every worker leave its loop and waits for it.
func (p *Pool) dismiss() {
	p.closed = true
	for _, w := range p.workers {
		w.ring(cmdExit)
	}
	p.exited.Wait()
}

// Close ends the workers and waits for them and for a Run or Lead in progress. A second call does
// nothing.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.dismiss()
	}
}
