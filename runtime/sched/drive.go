package sched

import (
	"sync"
	"time"
)

// Clock is the time base of a Driver.
type Clock interface {
	// Now returns the time of a Step. The lock may be held.
	Now() time.Duration
	// Wait reports whether to continue. It is called without the lock: before each forward, and
	// with idle set if there is nothing to run; then it first waits for a Post.
	Wait(idle bool) bool
}

// Executor carries out the actions of a Scheduler. The lock is held in all methods but Run.
type Executor interface {
	// Carry carries out an action that is not a forward: Halt, Preempt, Reject or Placed.
	Carry(a *Action)
	// Begin prepares a forward. A Halt may follow at any time from here on.
	Begin(f *Action)
	// Run computes a forward until it is done or halts, and reports which. With forwards in flight
	// on several lanes it returns when the first of them ends, and reports its lane. It returns
	// NoLane if Land was called for all of them.
	Run(f *Action) (ended LaneID, done bool)
	// End takes the results of Run. For a forward that is done it appends Sampled and Finish
	// events. The last of events is its Done or Stopped; End may set Ahead of the latter.
	End(f *Action, done bool, events []Event) []Event
}

// Driver runs a Scheduler: it collects events, steps, passes actions to the Executor, runs forwards
// and reports how they ended. An engine drives with the wall clock, a simulation with a virtual
// one. The Driver itself decides nothing.
type Driver struct {
	sched   *Scheduler
	lock    sync.Locker
	clock   Clock
	exec    Executor
	events  []Event   // since the last Step
	flights []forward // by lane
}

// forward is a copy of the action of a forward in flight: a later Step reuses the scheduler's
// slices.
type forward struct {
	active bool
	Action
}

// NewDriver returns a driver of s. The lock guards s, the driver and the state of its owner.
func NewDriver(s *Scheduler, lock sync.Locker, c Clock, e Executor) *Driver {
	return &Driver{sched: s, lock: lock, clock: c, exec: e, flights: make([]forward, len(s.Lanes()))}
}

// Drive runs forwards until the clock ends it.
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

// Next returns a forward to pass to Run, or nil if there is nothing to compute.
func (d *Driver) Next() *Action {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.step()
	for i := range d.flights {
		if f := &d.flights[i]; f.active {
			return &f.Action
		}
	}
	return nil
}

// Run computes f until a forward in flight ends or halts, and records its result. With several
// lanes this may be another lane's forward.
func (d *Driver) Run(f *Action) {
	lane, done := d.exec.Run(f)
	d.lock.Lock()
	defer d.lock.Unlock()
	if lane != NoLane {
		d.land(lane, done)
	}
}

// Land records the end of a forward in flight that Run does not compute, such as one on a device,
// and starts the next forward of its lane. Other goroutines than that of Run may call it. The lock
// is held.
func (d *Driver) Land(lane LaneID, done bool) {
	d.land(lane, done)
	d.step()
}

func (d *Driver) land(lane LaneID, done bool) {
	ended := &d.flights[lane]
	ended.active = false
	kind := Stopped
	if done {
		kind = Done
	}
	d.events = d.exec.End(&ended.Action, done, append(d.events, Event{Kind: kind, Lane: lane}))
}

// Post adds an event. The lock is held. With a forward in flight the scheduler steps at once, so
// that a rejection does not wait for its end and the forward halts for more urgent work. Otherwise
// Next steps, and the caller wakes the clock.
func (d *Driver) Post(e Event) {
	d.events = append(d.events, e)
	if d.Busy() {
		d.step()
	}
}

// Busy reports whether a forward is in flight. The lock is held.
func (d *Driver) Busy() bool {
	for i := range d.flights {
		if d.flights[i].active {
			return true
		}
	}
	return false
}

// Pending reports whether the scheduler has not seen an event yet, such as the end of a forward.
// The lock is held.
func (d *Driver) Pending() bool { return len(d.events) > 0 }

// Idle reports whether no request is live, no forward or load in progress and no event pending. The
// lock is held.
func (d *Driver) Idle() bool {
	return !d.Busy() && len(d.events) == 0 && d.sched.Live() == 0 && len(d.sched.loads) == 0
}

// InFlight returns the forward in flight on a lane, or nil. The lock is held.
func (d *Driver) InFlight(lane LaneID) *Action {
	if f := &d.flights[lane]; f.active {
		return &f.Action
	}
	return nil
}

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
	f := &d.flights[a.Lane]
	rows := append(f.Rows[:0], a.Rows...)
	f.active, f.Action = true, *a
	f.Rows = rows
	d.exec.Begin(&f.Action)
}
