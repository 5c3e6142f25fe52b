package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/engine/forecast"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/engine/traffic"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// stopDevice ends the forward on the device, if any.
func (e *Engine) stopDevice() {
	e.onDevice.gate.stop.Store(true)
	if e.lanes.cancel != nil {
		e.lanes.cancel()
	}
}

// executor returns what carries out the actions of the scheduler.
func (e *Engine) executor(on *offload.Runner, o *DeviceOptions) sched.Executor {
	if on == nil {
		return &e.cores
	}
	e.onDevice.e, e.onDevice.device = e, on
	e.onDevice.costs = forecast.NewCosts(e.runner.Model, e.runner.Plan, nil)
	e.lanes = lanes{e: e, name: o.Name, changed: make(chan struct{}, 1), failed: make(chan failure, 1)}
	e.lanes.ctx, e.lanes.cancel = context.WithCancel(context.Background())
	if o.needsCores {
		e.onDevice.costs = e.cores.costs
		for _, p := range o.Phases {
			e.cores.shared[p] = true
		}
		return &e.cores
	}
	if slices.Contains(o.Phases, phase.Prefill) {
		on.Prepare(e.runner.Plan.Chunk, false)
	}
	divides := o.Divide && on.Exact() && slices.Equal(o.Phases, []phase.Phase{phase.Prefill})
	e.lanes.divided.enabled = divides && e.runner.ReserveMore() == nil
	return &e.lanes
}

// monitor returns a monitor of the memory that the device and the cores share, or nil if they share
// none or run one forward at a time.
func (o *DeviceOptions) monitor(r *forward.Runner) *traffic.Monitor {
	alone := o.Device == nil || len(o.Phases) == phase.Count || o.needsCores
	if alone || o.IgnoreTraffic || !o.Device.Info().Unified {
		return nil
	}
	m, kv := r.Memory(), int64(r.Assembly().KV.Bytes())
	return traffic.New(m.Weights, kv/int64(max(1, r.Blocks()*kvcache.BlockTokens)))
}

// contends reports whether a prefill and a decode batch slow each other down. Engine.mu is held.
func (e *Engine) contends(pos, n, rows, positions int) bool {
	if e.onDevice.device == nil {
		return false
	}
	prefill := traffic.Work{Positions: pos + n, Takes: e.costsOf(phase.Prefill).Forward(phase.Prefill,
		cost.Span(pos, n))}
	decode := traffic.Work{Positions: positions, Takes: e.costsOf(phase.Decode).Forward(phase.Decode,
		cost.Load{Rows: rows, Heads: rows, Positions: positions})}
	if e.deviceRuns(phase.Prefill) {
		return e.contend(decode, prefill)
	}
	return e.contend(prefill, decode)
}

// learnTraffic takes a complete forward of the lane into the measured flow of its side.
func (c *lane) learnTraffic(act *sched.Action, done bool) {
	if c.e.traffic == nil || !done || act.Kind == sched.Resume || c.e.onDevice.device == nil || c.onCores {
		return
	}
	w := traffic.Work{Takes: c.took}
	for i := range c.batch.Spans {
		w.Positions += c.batch.Spans[i].Pos + c.batch.Spans[i].Rows
	}
	side := traffic.Cores
	if c.device != nil {
		side = traffic.Device
	}
	c.e.traffic.Learn(side, w)
}

// compileAhead lets the device compile kernels for the rows of the chunks of a prompt, while the
// prompt waits. Engine.mu is held.
func (e *Engine) compileAhead(j *job) {
	d, chunk := e.onDevice.device, e.runner.Plan.Chunk
	if d == nil || !e.accelerates.Static || !e.deviceRuns(phase.Prefill) || j.req.OfPrompt {
		return
	}
	urgent := j.req.Class == api.Reactive
	for pos, end := e.sched.Cached(j.req.Salt, j.req.Prompt), len(j.req.Prompt); pos < end; pos += chunk {
		n := min(chunk, end-pos)
		if m := e.lanes.deviceRows(pos, n); e.lanes.divided.enabled && (urgent || !e.reactive()) && m > 0 {
			n = m
		}
		d.Prepare(n, urgent)
	}
}

// lane returns the state of a lane.
func (l *lanes) lane(id sched.LaneID) *lane {
	if id == deviceLane {
		return &l.e.onDevice
	}
	return &l.e.cores
}

// Carry carries out the scheduler's actions that run no forward.
func (l *lanes) Carry(a *sched.Action) {
	l.lane(a.Lane).Carry(a)
	if a.Kind == sched.Halt && a.Lane == deviceLane {
		l.halt()
	}
	l.change()
}

// Begin starts a forward on the device, or queues it for the cores.
func (l *lanes) Begin(act *sched.Action) {
	c := l.lane(act.Lane)
	c.Begin(act)
	if c.device == nil {
		l.queue(act)
		return
	}
	c.gate.start(c.next)
	if l.divide(act) {
		return
	}
	set, from := c.set, c.next
	l.running.Go(func() {
		next, err := c.device.Forward(l.ctx, set, &c.batch, from, act.Bound, &c.gate, nil)
		f := failure{err: err}
		if err == nil {
			f.panicked = l.land(next)
		}
		if f.err != nil || f.panicked != nil {
			l.failed <- f
		}
		l.change()
	})
}

// land takes the results of the forward on the device, which is done or halted before op `next`.
func (l *lanes) land(next int) (panicked any) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	defer func() { panicked = recover() }()
	c := &l.e.onDevice
	c.took, c.ended = c.gate.last.Sub(c.gate.began), c.gate.last
	if c.batch.Prefill && c.next == 0 && next == len(c.gate.steps) {
		l.divided.balance.LearnDevice(c.batch.Rows(), c.took)
		l.divided.balance.LearnCores(0, 0)
	}
	c.next = next
	l.e.driver.Land(deviceLane, next == len(c.gate.steps))
	return nil
}

// queue lets Run execute a forward on the cores. Engine.mu is held.
func (l *lanes) queue(act *sched.Action) {
	l.waiting[act.Lane] = act
	l.queued.Add(1)
	l.change()
}

// change wakes Run.
func (l *lanes) change() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run executes the next forward of the cores, as soon as there is one, or returns when none is in
// flight.
func (l *lanes) Run(*sched.Action) (ended sched.LaneID, done bool) {
	for {
		select {
		case f := <-l.failed:
			l.moveToCores(f)
		default:
		}
		if l.ready() {
			if ended, done := l.stepDivided(); ended {
				return deviceLane, done
			}
			continue
		}
		act, busy := l.nextOnCores()
		switch {
		case act != nil:
			began := time.Now()
			ended, done = l.lane(act.Lane).Run(act)
			l.spend(time.Since(began))
			return ended, done
		case !busy:
			return sched.NoLane, false
		}
		l.e.rest()
		select {
		case f := <-l.failed:
			l.moveToCores(f)
		case <-l.changed:
		}
	}
}

// nextOnCores takes a forward out of waiting: that of the cores' lane first. busy reports whether a
// forward is in flight.
func (l *lanes) nextOnCores() (act *sched.Action, busy bool) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	for i := len(l.waiting) - 1; i >= 0; i-- {
		if act := l.waiting[i]; act != nil {
			l.waiting[i] = nil
			l.queued.Add(-1)
			return act, true
		}
	}
	return nil, l.e.driver.Busy()
}

// moveToCores lets the forward of a device that failed run on the cores, from its first op.
func (l *lanes) moveToCores(f failure) {
	if f.panicked != nil {
		panic(f.panicked)
	}
	l.lose(f.err)
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	c, act := &l.e.onDevice, l.e.driver.InFlight(deviceLane)
	planned := *act
	if act.Kind == sched.Resume {
		planned.Kind = sched.Prefill
	}
	c.next = 0
	c.plan(&planned)
	l.queue(act)
}

// lose moves the device's lane to the cores. It closes a device that failed; one that was stopped
// because the engine ends remains open.
func (l *lanes) lose(err error) {
	c := &l.e.onDevice
	stopped, exact := errors.Is(err, context.Canceled), c.device.Exact()
	if device := c.device; stopped {
		l.running.Go(func() { closeDevice(device) })
	} else {
		l.closeFailed(device)
	}
	l.e.mu.Lock()
	c.device, c.costs, c.ended = nil, l.e.cores.costs, time.Time{}
	l.e.cores.upload = [sched.Sets]*offload.Upload{}
	l.divided.paused = pausedPrefill{} // its goroutine does not run
	if !stopped {
		l.e.counts.LostDevices++
	}
	for _, j := range l.e.jobs {
		j.resumeAt = 0 // activations of halted forwards are lost
		if !exact && !stopped && !j.started.IsZero() {
			l.abandon(j, &api.LostDeviceError{Device: l.name, Err: err})
		}
	}
	l.e.mu.Unlock()
	switch {
	case l.e.cores.shared != [phase.Count]bool{}: // there is one lane
	case l.e.runner.ReserveMore() == nil:
		c.base = sched.Sets
	default:
		c.again = true
	}
	if l.e.lost != nil && !stopped {
		after := "its requests continue on the cores"
		if !exact {
			after = "requests that have started fail, since its results differ by rounding"
		}
		l.e.lost(fmt.Errorf("the device failed; %s: %w", after, err))
	}
}

// closeFailed closes a device in the background, since its driver may hang. If the device may still
// write to the KV cache of the cores, closeFailed waits for the end of that, at most closeLimit.
func (l *lanes) closeFailed(r *offload.Runner) {
	closed := make(chan struct{})
	l.running.Go(func() {
		defer close(closed)
		_ = l.e.accelerates.Device.Close()
	})
	if r.SharesKV() {
		select {
		case <-closed:
		case <-time.After(closeLimit):
		}
	}
}

// closeLimit bounds the wait for the end of a lost device that shares the KV cache of the cores.
const closeLimit = 5 * time.Second

// abandon ends a job with an error. Engine.mu is held.
func (l *lanes) abandon(j *job, err error) {
	delete(l.e.jobs, j.id)
	l.e.driver.Post(sched.Event{Kind: sched.Cancel, ID: j.id})
	j.out.close("", err)
}

// forward runs the forward of an action on the cores, from the step at which it begins, or on the
// device but for the experts. If the device fails, the cores run it from its first op.
func (c *lane) forward(act *sched.Action) (next int, err error) {
	if c.sharing {
		cores := coresOf(c.e.runner, c.e.leader)
		cores.Steps = c.cuts[c.set]
		next, err := c.e.onDevice.device.Forward(c.e.lanes.ctx, c.set, &c.batch, c.next, act.Bound, &c.gate, cores)
		if err == nil {
			return next, nil
		}
		c.leaveDevice(act, err)
	}
	return c.e.runner.Forward(c.e.leader, &c.batch, c.next, &c.gate)
}

// leaveDevice plans the forward of an action for the cores alone, after the device failed.
func (c *lane) leaveDevice(act *sched.Action, err error) {
	c.e.lanes.lose(err)
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.sharing, c.next = false, 0
	planned := *act
	if act.Kind == sched.Resume {
		planned.Kind = sched.Prefill
	}
	c.plan(&planned)
	c.e.runner.Cut(c.cuts[c.set])
	c.gate.start(0)
}

// beginUpload tells the device that the cores begin or resume a forward. If the device runs decode
// batches, it copies the keys and values of a prompt there while the cores compute it.
func (c *lane) beginUpload() *offload.Upload {
	d := c.e.onDevice.device
	if d == nil || c.sharing {
		return nil
	}
	if !c.batch.Prefill || !c.e.deviceRuns(phase.Decode) {
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
