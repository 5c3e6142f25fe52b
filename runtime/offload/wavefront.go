package offload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Wavefront computes a prompt on the device and on the cores at the same time. Each chunk is
// divided: the device computes the first rows and the cores the others, one layer later, since
// their attention reads the keys and values of the first rows. Meanwhile the device continues with
// the next chunk, whose attention reads those of the cores. No op is divided, so that the results
// have the bits of either side alone.
//
// The device runs in a goroutine. The caller runs the part of the cores by Step until that is done,
// and calls End. Between Pause and Resume other forwards may run on other sets of activations.
type Wavefront struct {
	runner   *Runner
	chunks   []Chunk
	onDevice *progress // keys and values that are in the cores' cache
	onCores  *progress // keys and values whose copies to the device are submitted
	changed  func()
	device   deviceSide
	pausing  atomic.Bool
	stopped  atomic.Bool    // no goroutine runs the device's part
	running  sync.WaitGroup // the goroutine
	cancel   context.CancelFunc

	next   point   // of the cores
	upload *Upload // of the current chunk
	gate   wavefrontGate
}

// deviceSide is the state of the device's part, which its goroutine owns.
type deviceSide struct {
	ctx    context.Context // of all forwards
	set    int
	chunk  int
	before int           // last chunk with a part of the cores; -1: none
	halted *forward      // of the chunk; nil: it has not begun
	took   time.Duration // without pauses
}

// Chunk is consecutive rows of one sequence. Either part may be empty. The device's part comes
// first and wants no logits. Where a part of the other side follows, it ends at the end of a KV
// block.
type Chunk struct{ Device, Cores kvcache.Batch }

// SplitBatch divides a batch of one sequence after m rows. The parts use memory of the batch.
func SplitBatch(b *kvcache.Batch, m int) (c Chunk) {
	whole := b.Spans[0]
	part := func(first, rows int) (p kvcache.Batch) {
		if rows == 0 {
			return p
		}
		s := whole
		s.Row, s.Rows, s.Pos = 0, rows, whole.Pos+first
		p = kvcache.Batch{Tokens: b.Tokens[first : first+rows], Spans: []kvcache.Span{s}, Prefill: b.Prefill}
		for _, row := range b.LogitRows {
			if int(row) >= first && int(row) < first+rows {
				p.LogitRows = append(p.LogitRows, row-int32(first))
			}
		}
		return p
	}
	return Chunk{Device: part(0, m), Cores: part(m, whole.Rows-m)}
}

// StartWavefront starts the device's part of the chunks on a set of activations. changed, which may
// be nil, is called from other goroutines when Ready may have changed. The Runner must run no other
// forward until End.
func (r *Runner) StartWavefront(ctx context.Context, set int, chunks []Chunk, changed func()) (*Wavefront, error) {
	if r.onCores != nil {
		return nil, errors.New("a device that leaves ops to the cores does not divide prompts")
	}
	w := &Wavefront{runner: r, chunks: chunks, onDevice: newProgress(changed), onCores: newProgress(nil),
		changed: changed, device: deviceSide{set: set, before: -1}}
	w.gate.Wavefront = w
	for i := range chunks {
		if err := w.check(i); err != nil {
			return nil, err
		}
	}
	w.skipEmpty()
	w.device.ctx, w.cancel = context.WithCancel(ctx)
	w.start()
	return w, nil
}

// start runs the device's part in a goroutine until it is done, halts or fails.
func (w *Wavefront) start() {
	w.stopped.Store(false)
	w.running.Go(func() {
		began := time.Now()
		if err := w.runDevice(); err != nil {
			w.fail(err)
		}
		w.device.took += time.Since(began)
		w.stopped.Store(true)
		if w.changed != nil {
			w.changed()
		}
	})
}

// Pause stops the device's part after the segments in flight; it does not wait. The caller runs no
// Step until Resume. Halted reports when other forwards may run.
func (w *Wavefront) Pause() {
	w.pausing.Store(true)
	w.onCores.interrupt(true)
}

// Halted reports whether the device's part has stopped, and why it failed, if it did.
func (w *Wavefront) Halted() (bool, error) {
	_, err := w.onDevice.reached(point{})
	return w.stopped.Load(), err
}

// Resume continues after Pause, once Halted. chunks has the same rows as before, in memory that
// remains valid until the next Pause.
func (w *Wavefront) Resume(chunks []Chunk) {
	copy(w.chunks, chunks)
	w.pausing.Store(false)
	w.onCores.interrupt(false)
	w.start()
}

// Discard ends a wavefront that is paused. The chunks must be computed again.
func (w *Wavefront) Discard() {
	w.cancel()
	w.running.Wait()
}

// Op returns the op of the current chunk that the cores have reached.
func (w *Wavefront) Op() int { return w.next.op }

// check returns an error if a chunk cannot be computed.
func (w *Wavefront) check(i int) error {
	c := &w.chunks[i]
	if len(c.Device.LogitRows) > 0 {
		return fmt.Errorf("chunk %d: the device's part wants logits", i)
	}
	for _, b := range []*kvcache.Batch{&c.Device, &c.Cores} {
		last := b == &c.Cores && i == len(w.chunks)-1
		if len(b.Spans) > 1 || b.Rows() > w.runner.rows {
			return fmt.Errorf("chunk %d: a part of %d rows of %d sequences", i, b.Rows(), len(b.Spans))
		}
		if b.Rows() > 0 && !last && (b.Spans[0].Pos+b.Rows())%kvcache.BlockTokens != 0 {
			return fmt.Errorf("chunk %d: a part ends at position %d, within a KV block", i, b.Spans[0].Pos+b.Rows())
		}
	}
	return nil
}

// fail ends both sides with an error. The caches have keys and values of neither.
func (w *Wavefront) fail(err error) {
	w.onDevice.fail(err)
	w.onCores.fail(err)
}

// runDevice computes the device's parts, from where they halted on.
func (w *Wavefront) runDevice() error {
	d, ops := &w.device, len(w.runner.model.Ops)
	for ; d.chunk < len(w.chunks); d.chunk++ {
		if w.chunks[d.chunk].Device.Rows() > 0 {
			if err := w.runChunk(); err != nil || d.halted != nil {
				return err
			}
			w.onDevice.reach(point{d.chunk, ops})
		}
		if w.chunks[d.chunk].Cores.Rows() > 0 {
			d.before = d.chunk
		}
	}
	w.onDevice.reach(point{len(w.chunks), 0})
	return nil
}

// runChunk begins or continues the forward of the device's current chunk. It sets halted if that
// does not end.
func (w *Wavefront) runChunk() error {
	d, r := &w.device, w.runner
	f := d.halted
	if f == nil {
		b := &w.chunks[d.chunk].Device
		f = &forward{Runner: r, set: r.sets[d.set], batch: b, end: r.endOf(b), byLayer: true,
			gate: deviceProgress{w, d.chunk}}
		if before := d.before; before >= 0 {
			f.coming = w.chunks[before].Cores.Spans
			f.reads = func(op int) (ready bool, wait func() error, err error) {
				at := point{before, op}
				ready, err = w.onCores.reached(at)
				return ready, func() error { return w.onCores.wait(at) }, err
			}
		}
	}
	run := f.resume
	if d.halted == nil {
		run = f.runAll
	}
	f.halted, d.halted = false, nil
	if err := run(d.ctx); err != nil {
		return err
	}
	if f.next < f.end {
		d.halted = f
	}
	return nil
}

// deviceProgress is the gate of a forward on the device.
type deviceProgress struct {
	*Wavefront
	chunk int
}

func (g deviceProgress) Passed(next int) bool {
	g.onDevice.reach(point{g.chunk, next})
	return g.pausing.Load()
}

// skipEmpty moves the cores on to the next chunk in which they have rows.
func (w *Wavefront) skipEmpty() {
	for !w.coresDone() && w.chunks[w.next.chunk].Cores.Rows() == 0 {
		w.next.chunk++
	}
}

func (w *Wavefront) coresDone() bool { return w.next.chunk == len(w.chunks) }

// needs returns the point that the device must have reached before the cores run an op: for
// attention, all ops before it.
func (w *Wavefront) needs(at point) point {
	if w.runner.model.Ops[at.op].Kind != model.OpAttention {
		return point{}
	}
	for i := at.chunk; i >= 0; i-- {
		if w.chunks[i].Device.Rows() > 0 {
			return point{i, at.op}
		}
	}
	return point{}
}

// Ready reports whether the next step of the cores can run, or has failed.
func (w *Wavefront) Ready() bool {
	if w.coresDone() {
		return true
	}
	ready, err := w.onDevice.reached(w.needs(w.next))
	return ready || err != nil
}

// Wait blocks until Ready.
func (w *Wavefront) Wait() {
	if !w.coresDone() {
		_ = w.onDevice.wait(w.needs(w.next)) // Step returns the error
	}
}

// Step runs the cores' part until it needs keys and values that the device has not computed yet, or
// until gate, which may be nil, halts it. run runs a batch on the cores, from an op on, as
// exec.Executor.Run does. done says that the part is complete; the logits are then those of the
// last batch. After an error the chunks must be computed again on the cores.
func (w *Wavefront) Step(gate exec.Gate,
	run func(b *kvcache.Batch, from int, gate exec.Gate) (next int, err error)) (done bool, err error) {
	ops := len(w.runner.model.Ops)
	for !w.coresDone() {
		if ready, err := w.onDevice.reached(w.needs(w.next)); err != nil || !ready {
			return false, err
		}
		b := &w.chunks[w.next.chunk].Cores
		if w.upload == nil {
			w.upload = w.runner.NewUpload(b)
			chunk := w.next.chunk
			w.upload.submitted = func(op int) { w.onCores.reach(point{chunk, op}) }
		}
		w.gate.outer, w.gate.halted = gate, false
		w.upload.Begin(b)
		next, err := run(b, w.next.op, &w.gate)
		w.upload.End(err == nil && next == ops)
		if err == nil {
			err = w.upload.err
		}
		if err != nil {
			w.fail(err)
			return false, err
		}
		if w.next.op = next; next == ops {
			w.onCores.reach(point{w.next.chunk, ops})
			w.next, w.upload = point{chunk: w.next.chunk + 1}, nil
			w.skipEmpty()
		}
		if w.gate.halted {
			return w.coresDone(), nil
		}
	}
	return true, nil
}

// wavefrontGate is the gate of a forward on the cores.
type wavefrontGate struct {
	*Wavefront
	outer  exec.Gate
	halted bool // by outer
}

func (g *wavefrontGate) Passed(next int) bool {
	g.upload.Reached(max(0, next-1)) // other workers may not have completed the last op
	if g.outer != nil && g.outer.Passed(next) {
		g.halted = true
		return true
	}
	if next >= len(g.runner.model.Ops) {
		return false
	}
	ready, err := g.onDevice.reached(g.needs(point{g.next.chunk, next}))
	return !ready || err != nil
}

// End waits for the device's part and returns how long it took, and the first error of either side.
// Without one, both caches have the keys and values of all chunks. Unless the cores are done it
// stops the device.
func (w *Wavefront) End() (device time.Duration, err error) {
	if !w.coresDone() {
		w.cancel()
		w.onCores.fail(context.Canceled)
	}
	w.running.Wait()
	w.cancel()
	_, err = w.onDevice.reached(point{})
	if err != nil {
		for i := range w.chunks {
			for _, b := range []*kvcache.Batch{&w.chunks[i].Device, &w.chunks[i].Cores} {
				w.runner.CoresWrite(b)
			}
		}
	}
	return w.device.took, err
}
