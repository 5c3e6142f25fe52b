package engine

import (
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// plan lists the steps of the forward that begins. It cuts ops that are predicted to take longer
// than the bound of the forward into several steps. For a resumed forward it cuts the ops that have
// not begun again, since their predictions may have changed.
func (c *lane) plan(act *sched.Action) {
	if c.device != nil {
		c.planOnDevice(act)
		return
	}
	p, cuts := &c.gate, &c.cuts[act.Set]
	p.quantum = act.Quantum
	l, ops := loadOf(&c.batch), c.runner.Model.Ops
	first := 0 // first op that has not begun
	if act.Kind == sched.Resume {
		first = c.refine(act, l)
	} else {
		*cuts = (*cuts)[:0]
	}
	p.steps = p.steps[:0]
	var since time.Duration // predicted time since the last place to halt
	for i := range ops {
		a := plannedStep{op: i, of: 1}
		if act.Bound > 0 || act.Quantum > 0 {
			a.takes = c.costs.Op(phase.Prefill, i, l)
		}
		if act.Bound > 0 && i >= first {
			*cuts = append((*cuts)[:i], 0)
			since = c.cut(*cuts, i, since, a.takes, act.Bound, c.cuttable(act, &ops[i]))
		}
		if i < len(*cuts) {
			a.of = max(1, int((*cuts)[i]))
			if c.runner.HaltsAfter(i) || (*cuts)[i] > 0 {
				since = 0
			}
		}
		a.takes /= time.Duration(a.of)
		for range a.of {
			p.steps = append(p.steps, a)
		}
	}
	for s := len(p.steps) - 2; s >= 0; s-- { // add the steps up to the next place to halt
		if i := p.steps[s].op; !c.runner.HaltsAfter(i) && (i >= len(*cuts) || (*cuts)[i] == 0) {
			p.steps[s].takes += p.steps[s+1].takes
		}
	}
}

// cut sets the number of steps of op i, the last of cuts. If op i would exceed the bound together
// with the ops since the last place to halt, it adds a place to halt before op i. It returns the
// predicted time between the last place to halt and the end of op i.
func (c *lane) cut(cuts []uint16, i int, since, takes, bound time.Duration, cuttable bool) time.Duration {
	if since > 0 && since+takes > bound {
		cuts[i-1], since = max(cuts[i-1], 1), 0
	}
	if cuttable {
		if n := c.margin.steps(takes, bound); n > 1 {
			cuts[i] = uint16(n)
			return 0
		}
	}
	return since + takes
}

// cuttable reports whether an op of a forward can be divided: on the cores, not on a device.
func (c *lane) cuttable(act *sched.Action, op *model.Op) bool {
	return exec.Cuttable(op) && (op.Kind == model.OpExperts || !c.shares(act.Kind.Phase()))
}

// refine divides the steps of the op in which a halted forward continues, if they are now predicted
// to exceed the bound, and returns the op after it. Steps have equal shares of an op, so each can
// be divided into equal shares without omitting or repeating a column.
func (c *lane) refine(act *sched.Action, l cost.Load) (first int) {
	cuts, at := c.cuts[act.Set], c.next
	if len(cuts) < c.runner.Ops() {
		return c.runner.Ops() // the forward was not cut
	}
	for ; at >= max(1, int(cuts[first])); first++ {
		at -= max(1, int(cuts[first]))
	}
	if at == 0 || act.Bound == 0 {
		return first
	}
	of := int(cuts[first])
	takes := c.costs.Op(phase.Prefill, first, l) / time.Duration(of)
	if n := min(c.margin.steps(takes, act.Bound), mostCuts/of); n > 1 {
		cuts[first] *= uint16(n)
		c.next += at * (n - 1)
	}
	return first + 1
}

// shares reports whether the device runs the forwards of a phase but for the experts.
func (c *lane) shares(p phase.Phase) bool { return c.shared[p] && c.onDevice.device != nil }

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

// divide starts or resumes a forward on the device and the cores together, if that is predicted to
// be faster than the device alone. It reports whether it did. A proactive prompt is not divided
// next to reactive requests.
func (l *lanes) divide(act *sched.Action) bool {
	c := &l.onDevice
	c.onCores = false
	if !l.enabled || !c.device.Exact() || len(c.batch.Spans) != 1 {
		return false
	}
	p := &l.paused
	if p.wave != nil && p.id == act.ID && act.Kind == sched.Resume {
		l.resumeDivided(act)
		return true
	}
	if p.wave != nil && (p.id == act.ID || p.set == c.set || l.jobs[p.id] == nil) {
		l.discardPaused()
	}
	j := l.jobs[act.ID]
	proactive := j != nil && j.req.Class == api.Proactive
	if act.Kind != sched.Prefill || act.Quantum > 0 || proactive && l.reactive() {
		return false
	}
	s := c.batch.Spans[0]
	m := l.deviceRows(s.Pos, s.Rows)
	if m == 0 {
		return false
	}
	w, err := c.device.StartWavefront(l.ctx, c.set, []offload.Chunk{offload.SplitBatch(&c.batch, m)}, l.change)
	if err != nil {
		return false // the device wants logits
	}
	l.wave, l.rows, l.predicted, l.took, c.onCores = w, m, l.onCores(s.Pos+m, s.Rows-m), 0, true
	l.share = 1
	if proactive {
		l.share = l.quantum
	}
	l.counts.Divided++
	l.change()
	return true
}

// reactive reports whether a reactive request is live. Engine.mu is held.
func (e *Engine) reactive() bool {
	for _, j := range e.jobs {
		if j.req.Class == api.Reactive {
			return true
		}
	}
	return false
}

// resumeDivided continues a divided forward that halted, until the end of its quantum.
func (l *lanes) resumeDivided(act *sched.Action) {
	c, p := &l.onDevice, &l.paused
	l.wave, l.rows, l.predicted, l.took, c.onCores = p.wave, p.rows, p.predicted, p.took, true
	l.share = l.quantum
	w := p.wave
	*p = pausedPrefill{}
	w.Resume([]offload.Chunk{offload.SplitBatch(&c.batch, l.rows)})
	l.resumes++
	if n := l.resumes; act.Quantum > 0 {
		time.AfterFunc(act.Quantum, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.wave == w && l.resumes == n {
				l.halt()
			}
		})
	}
	l.change()
}

// halt stops the forward on the device's lane. Engine.mu is held.
func (l *lanes) halt() {
	l.onDevice.gate.stop.Store(true)
	if l.wave != nil {
		l.wave.Pause()
	}
	l.change()
}

// discardPaused ends a divided forward that halted; its prompt starts again. Engine.mu is held.
func (l *lanes) discardPaused() {
	if j := l.jobs[l.paused.id]; j != nil {
		j.resumeAt = 0
	}
	l.paused.wave.Discard()
	l.paused = pausedPrefill{}
}

// deviceRows returns the rows of a chunk that the device is to compute if the chunk is divided, 0
// if it is to compute all of them. Engine.mu is held.
func (l *lanes) deviceRows(pos, rows int) int { return l.balance.Rows(pos, rows, l.onCores(pos, rows)) }

// onCores returns the predicted time of rows of a prompt on the cores.
func (l *lanes) onCores(pos, rows int) time.Duration {
	return l.cores.costs.Forward(phase.Prefill, cost.Span(pos, rows))
}

// ready reports whether the loop is to continue with a divided forward: if its next step can run
// and no forward of the cores waits, or one has run since the last step; or if it has halted.
func (l *lanes) ready() bool {
	w := l.currentWave()
	if w == nil {
		return false
	}
	if l.onDevice.gate.stop.Load() {
		halted, _ := w.Halted()
		return halted
	}
	return w.Ready() && (l.slice > 0 || l.queued.Load() == 0)
}

func (l *lanes) currentWave() *offload.Wavefront {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wave
}

// dividedGate halts the cores' part of a forward for another engine that waits for the cores, or
// for a forward of the cores that waits, after a share of the time that the last one of those took.
type dividedGate struct {
	l     *lanes
	until time.Time
}

func (g *dividedGate) Passed(int) bool {
	if turns := g.l.turns; turns != nil && turns.Preempted() {
		return true
	}
	return g.l.onDevice.gate.stop.Load() || g.l.queued.Load() > 0 && !time.Now().Before(g.until)
}

// stepDivided continues with the cores' part of a divided forward. It reports whether the forward
// ended or halted, and whether it is done. If the device failed the forward is queued for the
// cores.
func (l *lanes) stepDivided() (ended, done bool) {
	c, w := &l.onDevice, l.currentWave()
	if c.gate.stop.Load() {
		return l.pauseDivided(w)
	}
	began := time.Now()
	done, err := w.Step(&dividedGate{l, began.Add(l.slice)}, l.runPart)
	l.spend(time.Since(began))
	l.slice = 0
	l.cores.ended = time.Time{} // the time since then is no overhead between forwards
	if err == nil && !done {
		return false, false
	}
	device, failed := w.End()
	if err == nil {
		err = failed
	}
	for i := range c.batch.LogitRows {
		if err == nil && !l.runner.Sound(i) {
			err = fmt.Errorf("%w: the logits are not finite", offload.ErrResult)
		}
	}
	l.mu.Lock()
	if err == nil {
		l.balance.LearnDevice(l.rows, device)
		l.balance.LearnCores(l.took, l.predicted)
	}
	l.endWave(len(c.gate.steps))
	l.mu.Unlock()
	if err != nil {
		l.moveToCores(failure{err: err})
		return false, false
	}
	return true, true
}

// endWave notes that no divided forward is in flight, and the op before which it ended. Engine.mu
// is held.
func (l *lanes) endWave(next int) {
	c := &l.onDevice
	l.wave = nil
	c.ended, c.next = time.Now(), next
	c.took = c.ended.Sub(c.gate.began)
}

// pauseDivided ends a divided forward that has halted, and keeps it for resumption.
func (l *lanes) pauseDivided(w *offload.Wavefront) (ended, done bool) {
	c := &l.onDevice
	if _, err := w.Halted(); err != nil {
		_, err = w.End()
		l.mu.Lock()
		l.endWave(0)
		closing := l.closing
		l.mu.Unlock()
		if closing {
			return true, false
		}
		l.moveToCores(failure{err: err})
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused.wave != nil {
		l.discardPaused()
	}
	l.paused = pausedPrefill{wave: w, id: l.driver.InFlight(deviceLane).ID, set: c.set, rows: l.rows,
		predicted: l.predicted, took: l.took}
	l.endWave(max(1, min(w.Op(), len(c.gate.steps)-1))) // 0 would begin again
	if l.jobs[l.paused.id] == nil {
		l.discardPaused()
	}
	return true, false
}

// spend adds the time of a step or of a forward to that of the cores' part. The next step may take
// a share of it.
func (l *lanes) spend(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took += d
	l.slice = time.Duration(l.share * float64(d))
}

// runPart runs a part of a divided forward on the cores, on the second sets of activations, since
// forwards of the cores' lane use the first.
func (l *lanes) runPart(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error) {
	c := &l.onDevice
	c.takeCores()
	defer c.pause()
	l.runner.UseTeams(l.watch.team())
	l.runner.Use(sched.Sets + c.set)
	l.runner.Cut(nil)
	return l.runner.Forward(l.leader, b, from, gate)
}

// endDivided stops a divided forward when the engine ends.
func (l *lanes) endDivided() {
	if l.wave != nil {
		_, _ = l.wave.End()
	}
	if l.paused.wave != nil {
		l.paused.wave.Discard()
	}
}

// learn updates the table of costs with the step times of the forward that ended.
func (c *lane) learn(act *sched.Action) {
	of := act.Kind.Phase()
	l := loadOf(&c.batch)
	var inside time.Duration
	for _, s := range c.gate.spans {
		inside += s.took
		if s.to == s.from+1 {
			a := c.gate.steps[s.from]
			c.costs.Observe(a.op, a.of, s.took)
			if a.of > 1 {
				c.margin.note(s.took, a.takes)
			}
			continue
		}
		// With several ranks, times are known only between gathers and cuts. The time between two
		// of them is divided among the ops in proportion to their predictions.
		var all time.Duration
		for _, a := range c.gate.steps[s.from:s.to] {
			all += c.costs.Op(of, a.op, l) / time.Duration(a.of)
		}
		for _, a := range c.gate.steps[s.from:s.to] {
			share := 1 / float64(s.to-s.from) // without predictions
			if all > 0 {
				share = float64(c.costs.Op(of, a.op, l)/time.Duration(a.of)) / float64(all)
			}
			c.costs.Observe(a.op, a.of, time.Duration(share*float64(s.took)))
		}
	}
	c.costs.Learn(of, l)
	if c.gap > 0 { // and the overhead before the first op and after the last one
		c.costs.ObserveBetween(c.gap + max(0, c.took-inside))
	}
}
