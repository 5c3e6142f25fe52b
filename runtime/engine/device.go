package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandwich/runtime/cost"
	"sandwich/runtime/device"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// DeviceOptions configures forwards on a device. The zero value uses the cores alone.
type DeviceOptions struct {
	Device device.Device // nil: the cores alone; the engine closes it only when it is lost
	Name   string        // of its lane
	Phases []phase.Phase // whose forwards it runs; the cores run those of the others. nil: by measurement
	// Chose is called before New returns if the phases are measured. nil is not called.
	Chose func(t DeviceTimes, phases []phase.Phase)
	// Optional uses the cores alone if the device cannot run the model, after a call of Refused,
	// which may be nil. Otherwise New returns the error.
	Optional bool
	Refused  func(err error)
	// Lost is called by the loop when the device fails and its requests continue on the cores. nil
	// is not called.
	Lost func(err error)
}

// lanes returns the lanes of the scheduler.
func (o *DeviceOptions) lanes() []sched.Lane {
	if o.Device == nil {
		return []sched.Lane{sched.CoresLane()}
	}
	list := []sched.Lane{{Name: o.Name, Phases: o.Phases}}
	var rest []phase.Phase
	for _, p := range phase.All {
		if !list[0].Serves(p) {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 {
		list = append(list, sched.Lane{Name: "cores", Phases: rest, Cores: true})
	}
	return list
}

// deviceLane is the lane of the device, the first one.
const deviceLane = sched.LaneID(0)

// openDevice copies the model to the device and sets the phases that it runs. It returns nil if the
// cores run both.
func openDevice(ctx context.Context, r *Runner, o *Options) (*offload.Runner, error) {
	a := &o.Accelerator
	if a.Device == nil {
		return nil, nil
	}
	on, err := offload.Open(offload.Options{Device: a.Device, Assembly: r.assembly, Rows: r.assembly.Rows(),
		LogitRows: o.LogitRows, Sets: sched.Sets, Context: o.Context})
	var t DeviceTimes
	if err == nil && a.Phases == nil {
		t, err = measureDevice(ctx, r, on, o.Context)
	}
	switch {
	case err != nil:
		closeDevice(on)
		return nil, a.refused(err)
	case a.Phases != nil:
		return on, nil
	}
	a.Phases = t.faster()
	if a.Chose != nil {
		a.Chose(t, a.Phases)
	}
	if len(a.Phases) == 0 {
		a.Device = nil
		closeDevice(on)
		return nil, nil
	}
	return on, nil
}

// refused returns the error of a device that cannot run the model, or nil if the cores take its
// place.
func (o *DeviceOptions) refused(err error) error {
	if !o.Optional {
		return err
	}
	if o.Refused != nil {
		o.Refused(err)
	}
	o.Device = nil
	return nil
}

// closeDevice frees the memory on a device; nil: there is none.
func closeDevice(r *offload.Runner) {
	if r != nil {
		_ = r.Close() // the driver's process ends with the device
	}
}

// stopDevice ends the forward on the device, if any.
func (e *Engine) stopDevice() {
	e.onDevice.gate.stop.Store(true)
	if e.lanes.cancel != nil {
		e.lanes.cancel()
	}
}

// executor returns what carries out the actions of the scheduler.
func (e *Engine) executor(on *offload.Runner) sched.Executor {
	if on == nil {
		return &e.cores
	}
	e.onDevice.Engine, e.onDevice.device, e.onDevice.costs = e, on, newCosts(e.runner.Model, e.runner.Plan, nil)
	e.lanes = lanes{Engine: e, begun: make(chan struct{}, 1), results: make(chan result, 1)}
	e.lanes.ctx, e.lanes.cancel = context.WithCancel(context.Background())
	return &e.lanes
}

// lanes runs the forwards of a device, which run concurrently, together with those of the cores. It
// implements sched.Executor. When the device fails, its forwards run on the cores, one after the
// other with those of the cores' lane.
type lanes struct {
	*Engine
	waiting [2]*sched.Action // forwards to run on the cores, by lane; guarded by Engine.mu
	begun   chan struct{}    // has a token if a forward was added to waiting
	results chan result      // of the forward on the device
	ctx     context.Context  // of forwards on the device
	cancel  context.CancelFunc
	closing sync.WaitGroup // of a lost device
}

// result is how a forward on the device ended.
type result struct {
	next int
	err  error
}

// lane returns the state of a lane.
func (l *lanes) lane(id sched.LaneID) *lane {
	if id == deviceLane {
		return &l.onDevice
	}
	return &l.cores
}

// Carry carries out the scheduler's actions that run no forward.
func (l *lanes) Carry(a *sched.Action) { l.lane(a.Lane).Carry(a) }

// Begin starts a forward on the device, or queues it for the cores.
func (l *lanes) Begin(act *sched.Action) {
	c := l.lane(act.Lane)
	c.Begin(act)
	if c.device == nil {
		l.queue(act)
		return
	}
	c.gate.start(c.next)
	go func(set, from int) {
		next, err := c.device.Forward(l.ctx, set, &c.batch, from, act.Bound, &c.gate)
		l.results <- result{next, err}
	}(c.set, c.next)
}

// queue lets Run execute a forward on the cores. Engine.mu is held.
func (l *lanes) queue(act *sched.Action) {
	l.waiting[act.Lane] = act
	select {
	case l.begun <- struct{}{}:
	default:
	}
}

// Run executes the next forward of the cores, unless one of the device ends first.
func (l *lanes) Run(*sched.Action) (ended sched.LaneID, done bool) {
	for {
		select {
		case r := <-l.results:
			if done, ok := l.finish(r); ok {
				return deviceLane, done
			}
			continue
		default:
		}
		if act := l.nextOnCores(); act != nil {
			return l.lane(act.Lane).Run(act)
		}
		select {
		case r := <-l.results:
			if done, ok := l.finish(r); ok {
				return deviceLane, done
			}
		case <-l.begun:
		}
	}
}

// nextOnCores takes a forward out of waiting: that of the cores' lane first.
func (l *lanes) nextOnCores() *sched.Action {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.waiting) - 1; i >= 0; i-- {
		if act := l.waiting[i]; act != nil {
			l.waiting[i] = nil
			return act
		}
	}
	return nil
}

// finish takes the result of a forward on the device. If the device failed, ok is false and the
// forward runs on the cores, from its first op.
func (l *lanes) finish(r result) (done, ok bool) {
	c := &l.onDevice
	if r.err == nil {
		c.took, c.ended = c.gate.last.Sub(c.gate.began), c.gate.last
		c.next = r.next
		return r.next == len(c.gate.steps), true
	}
	l.lose(r.err)
	l.mu.Lock()
	defer l.mu.Unlock()
	act := l.driver.InFlight(deviceLane)
	planned := *act
	if act.Kind == sched.Resume {
		planned.Kind = sched.Prefill
	}
	c.next = 0
	c.plan(&planned)
	l.queue(act)
	return false, false
}

// lose moves the device's lane to the cores.
func (l *lanes) lose(err error) {
	c := &l.onDevice
	l.mu.Lock()
	c.device, c.costs, c.ended = nil, l.cores.costs, time.Time{}
	l.cores.upload = [sched.Sets]*offload.Upload{}
	l.counts.LostDevices++
	for _, j := range l.jobs {
		j.resumeAt = 0 // activations of halted forwards are lost
	}
	l.mu.Unlock()
	if l.runner.reserveMore() == nil {
		c.base = sched.Sets
	} else {
		c.again = true
	}
	if l.lost != nil && !errors.Is(err, context.Canceled) {
		l.lost(fmt.Errorf("the device failed; its requests continue on the cores: %w", err))
	}
	l.closing.Go(func() { _ = l.accelerator.Close() }) // the driver may hang
}

// beginUpload tells the device that the cores begin or resume a forward. If the device runs decode
// batches, it copies the keys and values of a prompt there while the cores compute it.
func (c *lane) beginUpload() *offload.Upload {
	d := c.onDevice.device
	if d == nil {
		return nil
	}
	if !c.batch.Prefill || !c.sched.Lanes()[deviceLane].Serves(phase.Decode) {
		d.CoresWrite(&c.batch)
		return nil
	}
	u := &c.upload[c.set]
	if c.next == 0 || *u == nil {
		*u = d.NewUpload(&c.batch)
	}
	(*u).Begin(&c.batch)
	return *u
}

// End records where a forward halted, or draws the tokens of one that is complete.
func (l *lanes) End(act *sched.Action, done bool, events []sched.Event) []sched.Event {
	return l.lane(act.Lane).End(act, done, events)
}

// finite reports whether the numbers of LogitRows[i] of the last forward of the lane are finite.
func (c *lane) finite(i int) bool {
	return c.device != nil || c.runner.finite(i) // the device's Forward has checked them
}

// logits returns the logits of LogitRows[i] of the last forward of the lane.
func (c *lane) logits(i int) []float32 {
	if c.device != nil {
		return c.device.Logits(i)
	}
	return c.runner.Logits(i)
}

// planOnDevice lists the ops of a forward on the device as its steps.
func (c *lane) planOnDevice(act *sched.Action) {
	p := &c.gate
	p.quantum = act.Quantum
	l := loadOf(&c.batch)
	p.steps = p.steps[:0]
	for i := range c.runner.Model.Ops {
		p.steps = append(p.steps, plannedStep{op: i, of: 1, takes: c.costs.Op(act.Kind.Phase(), i, l)})
	}
}

// prefillCosts returns the table that predicts prompts.
func (e *Engine) prefillCosts() *cost.Table {
	if d := &e.onDevice; d.device != nil {
		return d.costs
	}
	return e.cores.costs
}
