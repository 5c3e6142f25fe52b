package engine

import (
	"fmt"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/cost"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
)

// divide starts or resumes a forward on the device and the cores together, if that is predicted to
// be faster than the device alone. It reports whether it did. A proactive prompt is not divided
// next to reactive requests.
func (l *lanes) divide(act *sched.Action) bool {
	c, d := &l.e.onDevice, &l.divided
	c.onCores = false
	if !d.enabled || !c.device.Exact() || len(c.batch.Spans) != 1 {
		return false
	}
	p := &d.paused
	if p.wave != nil && p.id == act.ID && act.Kind == sched.Resume {
		l.resumeDivided(act)
		return true
	}
	if p.wave != nil && (p.id == act.ID || p.set == c.set || l.e.jobs[p.id] == nil) {
		l.discardPaused()
	}
	j := l.e.jobs[act.ID]
	proactive := j != nil && j.req.Class == api.Proactive
	if act.Kind != sched.Prefill || act.Quantum > 0 || proactive && l.e.reactive() {
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
	d.wave, d.rows, d.predicted, d.took = w, m, l.coresTime(s.Pos+m, s.Rows-m), 0
	d.share = 1
	if proactive {
		d.share = d.quantum
	}
	c.onCores = true
	l.e.counts.Divided++
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
	c, d := &l.e.onDevice, &l.divided
	w := d.paused.wave
	d.wave, d.rows, d.predicted, d.took = w, d.paused.rows, d.paused.predicted, d.paused.took
	d.share = d.quantum
	d.paused = pausedPrefill{}
	c.onCores = true
	w.Resume([]offload.Chunk{offload.SplitBatch(&c.batch, d.rows)})
	d.resumes++
	if n := d.resumes; act.Quantum > 0 {
		time.AfterFunc(act.Quantum, func() {
			l.e.mu.Lock()
			defer l.e.mu.Unlock()
			if d.wave == w && d.resumes == n {
				l.halt()
			}
		})
	}
	l.change()
}

// halt stops the forward on the device's lane. Engine.mu is held.
func (l *lanes) halt() {
	l.e.onDevice.gate.stop.Store(true)
	if l.divided.wave != nil {
		l.divided.wave.Pause()
	}
	l.change()
}

// discardPaused ends a divided forward that halted; its prompt starts again. Engine.mu is held.
func (l *lanes) discardPaused() {
	if j := l.e.jobs[l.divided.paused.id]; j != nil {
		j.resumeAt = 0
	}
	l.divided.paused.wave.Discard()
	l.divided.paused = pausedPrefill{}
}

// deviceRows returns the rows of a chunk that the device is to compute if the chunk is divided, 0
// if it is to compute all of them. Engine.mu is held.
func (l *lanes) deviceRows(pos, rows int) int {
	return l.divided.balance.Rows(pos, rows, l.coresTime(pos, rows))
}

// coresTime returns the predicted time of rows of a prompt on the cores.
func (l *lanes) coresTime(pos, rows int) time.Duration {
	return l.e.cores.costs.Forward(phase.Prefill, cost.Span(pos, rows))
}

// ready reports whether the loop is to continue with a divided forward: if its next step can run
// and no forward of the cores waits, or one has run since the last step; or if it has halted.
func (l *lanes) ready() bool {
	w := l.currentWave()
	if w == nil {
		return false
	}
	if l.e.onDevice.gate.stop.Load() {
		halted, _ := w.Halted()
		return halted
	}
	return w.Ready() && (l.divided.slice > 0 || l.queued.Load() == 0)
}

// currentWave returns the divided forward in flight; nil: none is.
func (l *lanes) currentWave() *offload.Wavefront {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	return l.divided.wave
}

// dividedGate halts the cores' part of a forward for another engine that waits for the cores, or
// for a forward of the cores that waits, after a share of the time that the last one of those took.
type dividedGate struct {
	l     *lanes
	until time.Time
}

// Passed implements exec.Gate.
func (g *dividedGate) Passed(int) bool {
	if turns := g.l.e.turns; turns != nil && turns.Preempted() {
		return true
	}
	return g.l.e.onDevice.gate.stop.Load() || g.l.queued.Load() > 0 && !time.Now().Before(g.until)
}

// stepDivided continues with the cores' part of a divided forward. It reports whether the forward
// ended or halted, and whether it is done. If the device failed the forward is queued for the
// cores.
func (l *lanes) stepDivided() (ended, done bool) {
	c, w := &l.e.onDevice, l.currentWave()
	if c.gate.stop.Load() {
		return l.pauseDivided(w)
	}
	began := time.Now()
	done, err := w.Step(&dividedGate{l, began.Add(l.divided.slice)}, l.runPart)
	l.spend(time.Since(began))
	l.divided.slice = 0
	l.e.cores.ended = time.Time{} // the time since then is no overhead between forwards
	if err == nil && !done {
		return false, false
	}
	device, failed := w.End()
	if err == nil {
		err = failed
	}
	for i := range c.batch.LogitRows {
		if err == nil && !l.e.runner.Sound(i) {
			err = fmt.Errorf("%w: the logits are not finite", offload.ErrResult)
		}
	}
	l.e.mu.Lock()
	if err == nil {
		d := &l.divided
		d.balance.LearnDevice(d.rows, device)
		d.balance.LearnCores(d.took, d.predicted)
	}
	l.endWave(len(c.gate.steps))
	l.e.mu.Unlock()
	if err != nil {
		l.moveToCores(failure{err: err})
		return false, false
	}
	return true, true
}

// endWave notes that no divided forward is in flight, and the op before which it ended. Engine.mu
// is held.
func (l *lanes) endWave(next int) {
	c := &l.e.onDevice
	l.divided.wave = nil
	c.ended, c.next = time.Now(), next
	c.took = c.ended.Sub(c.gate.began)
}

// pauseDivided ends a divided forward that has halted, and keeps it for resumption.
func (l *lanes) pauseDivided(w *offload.Wavefront) (ended, done bool) {
	c := &l.e.onDevice
	if _, err := w.Halted(); err != nil {
		_, err = w.End()
		l.e.mu.Lock()
		l.endWave(0)
		closing := l.e.closing
		l.e.mu.Unlock()
		if closing {
			return true, false
		}
		l.moveToCores(failure{err: err})
		return false, false
	}
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	d := &l.divided
	if d.paused.wave != nil {
		l.discardPaused()
	}
	d.paused = pausedPrefill{wave: w, id: l.e.driver.InFlight(deviceLane).ID, set: c.set, rows: d.rows,
		predicted: d.predicted, took: d.took}
	l.endWave(max(1, min(w.Op(), len(c.gate.steps)-1))) // 0 would begin again
	if l.e.jobs[d.paused.id] == nil {
		l.discardPaused()
	}
	return true, false
}

// spend adds the time of a step or of a forward to that of the cores' part. The next step may take
// a share of it.
func (l *lanes) spend(d time.Duration) {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.divided.took += d
	l.divided.slice = time.Duration(l.divided.share * float64(d))
}

// runPart runs a part of a divided forward on the cores, on the second sets of activations, since
// forwards of the cores' lane use the first.
func (l *lanes) runPart(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error) {
	c := &l.e.onDevice
	c.takeCores()
	defer c.pause()
	l.e.runner.UseTeams(l.e.watch.team())
	l.e.runner.Use(sched.Sets + c.set)
	l.e.runner.Cut(nil)
	return l.e.runner.Forward(l.e.leader, b, from, gate)
}

// endDivided stops a divided forward when the engine ends.
func (l *lanes) endDivided() {
	if l.divided.wave != nil {
		_, _ = l.divided.wave.End()
	}
	if l.divided.paused.wave != nil {
		l.divided.paused.wave.Discard()
	}
}
