package sched

import (
	"slices"
	"sync"
	"time"
)

// Clock is the time in which a Driver lives.
type Clock interface {
	// Now is the time of a Step and never goes backwards. The lock may be held.
	Now() time.Duration
	// Wait says, without the lock, whether to go on: before each forward, and, idle,
	// where there is nothing to run. Then it first waits for something to be posted.
	Wait(idle bool) bool
}

// Executor carries out what a Scheduler decides. The lock is held in all but Run.
type Executor interface {
	// Carry is told of a Halt, a Preempt or a Reject.
	Carry(a *Action)
	// Begin makes a forward ready. From here on it may be told to halt.
	Begin(f *Action)
	// Run computes a forward to its end and says that it is done, or halts and says that it is
	// not. Where forwards are in flight on several lanes it returns when the first of them ends,
	// and says which.
	Run(f *Action) (ended Lane, done bool)
	// End takes in what Run left; of a forward that is done it appends Sampled and Finish. The
	// last of events is its Done or Stopped, and of the latter Ahead may be set.
	End(f *Action, done bool, events []Event) []Event
}

// Driver is the loop around a Scheduler: it takes events, steps, has actions carried
// out and forwards run, and reports how they ended. An engine drives with the wall
// clock, a simulation with a virtual one; both obey and decide nothing.
type Driver struct {
	sched   *Scheduler
	lock    sync.Locker
	clock   Clock
	exec    Executor
	events  []Event // since the last Step
	flying  [MostLanes]bool
	forward [MostLanes]Action // in flight; a Step meanwhile takes the scheduler's slices back
}

// NewDriver returns a driver of s. The lock guards s, the driver and whatever else its
// owner wants to change together with them.
func NewDriver(s *Scheduler, lock sync.Locker, c Clock, e Executor) *Driver {
	return &Driver{sched: s, lock: lock, clock: c, exec: e}
}

// Drive runs forwards until the clock says that it is over.
func (d *Driver) Drive() {
	for {
		f := d.Next()
		if !d.clock.Wait(f == nil) {
			return
		}
		if f != nil {
			d.Run(f)
		}
	}
}

// Next returns a forward that Run has to run, nil where there is nothing to compute.
func (d *Driver) Next() *Action {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.step()
	for lane, flies := range d.flying {
		if flies {
			return &d.forward[lane]
		}
	}
	return nil
}

// Run runs the forward that Next returned, or that of another lane that ends before it, and takes
// in what that gave.
func (d *Driver) Run(f *Action) {
	lane, done := d.exec.Run(f)
	d.lock.Lock()
	defer d.lock.Unlock()
	d.flying[lane] = false
	kind := Stopped
	if done {
		kind = Done
	}
	d.events = d.exec.End(&d.forward[lane], done, append(d.events, Event{Kind: kind, Lane: lane}))
}

// Post takes an event in; the lock is held. While a forward is in flight the
// scheduler is stepped at once, so that a refusal does not wait for its end and the
// forward halts for what is more urgent. Otherwise Next does it, and is to be woken.
func (d *Driver) Post(e Event) {
	d.events = append(d.events, e)
	if d.flies() {
		d.step()
	}
}

// flies says whether a forward is in flight.
func (d *Driver) flies() bool { return slices.Contains(d.flying[:], true) }

// Idle says that nothing is live, in flight or to be taken in; the lock is held.
func (d *Driver) Idle() bool { return !d.flies() && len(d.events) == 0 && d.sched.Live() == 0 }

// step takes in what happened, has what is no forward carried out, and the forwards made ready.
func (d *Driver) step() {
	actions := d.sched.Step(d.clock.Now(), d.events)
	clear(d.events) // prompts were copied
	d.events = d.events[:0]
	for i := range actions {
		if a := &actions[i]; a.Kind.Forward() {
			d.begin(a)
		} else {
			d.exec.Carry(a)
		}
	}
}

func (d *Driver) begin(a *Action) {
	f := &d.forward[a.Lane]
	rows := append(f.Rows[:0], a.Rows...)
	*f, d.flying[a.Lane] = *a, true
	f.Rows = rows
	d.exec.Begin(f)
}
