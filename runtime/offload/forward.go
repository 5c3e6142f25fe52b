package offload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Limits of a segment without a bound. Drivers give up on submissions that take several seconds.
const (
	unboundedOps   = 64
	unboundedLong  = 16          // of batches whose keys and values take long to copy to the cores
	longestSegment = time.Second // by prediction
)

// Forward runs a batch from step `from` on and returns the next step: the number of steps when it
// is done, less when the gate halted it. An op is one step, unless cores divides it. To resume,
// call it with the same batch, set and step; other forwards may run on other sets in between. A
// segment takes at most the bound by prediction (0: a second), and at most two are in flight, so a
// forward halts within two segments. The gate may be nil.
//
// Keys and values of a segment are in the cores' cache when the gate is asked about it. An error
// means that the forward must be computed again on the cores from its first op; it wraps
// device.ErrLost if the device cannot be used any more, or ErrResult.
//
// cores computes the ops that the device does not; it may be nil unless NeedsCores. The gate is
// asked after each step of the cores.
func (r *Runner) Forward(ctx context.Context, set int, b *kvcache.Batch, from int, bound time.Duration,
	gate exec.Gate, cores *Cores) (next int, err error) {
	if r.onCores != nil && cores == nil {
		return from, errors.New("a forward on a device that leaves ops to the cores needs the cores")
	}
	if b.Rows() == 0 || b.Rows() > r.rows {
		return from, fmt.Errorf("a forward of %d rows on a device; it has room for %d", b.Rows(), r.rows)
	}
	f := forward{Runner: r, set: r.sets[set], batch: b, bound: bound, gate: gate, cores: cores, end: r.endOf(b)}
	f.next, f.inside = cores.locate(from)
	if from > 0 {
		err = f.resume(ctx)
	} else {
		err = f.runAll(ctx)
	}
	if err != nil {
		return from, err
	}
	if f.next < f.end {
		return cores.stepOf(f.next) + f.inside, nil
	}
	return cores.stepOf(len(r.model.Ops)), nil
}

// endOf returns the op before which a forward ends: without wanted logits it ends before the head.
func (r *Runner) endOf(b *kvcache.Batch) int {
	if len(b.LogitRows) > 0 {
		return len(r.model.Ops)
	}
	return slices.IndexFunc(r.model.Ops, func(op model.Op) bool { return op.Kind == model.OpGather })
}

// forward is a forward in progress.
type forward struct {
	*Runner
	set   *set
	batch *kvcache.Batch
	bound time.Duration
	gate  exec.Gate
	cores *Cores
	next  int // first op that is not complete
	end   int
	// inside is the number of steps of op next that the cores have completed.
	inside int

	// byLayer ends segments after the op that writes keys and values.
	byLayer bool
	// reads, if not nil, reports before an attention op is submitted whether the keys and values
	// that it reads are on the device. wait blocks until they are.
	reads func(op int) (ready bool, wait func() error, err error)
	// coming has the rows that reads waits for.
	coming []kvcache.Span

	flying []segment
	halted bool
}

// runAll runs a forward from its first op on until it is done or halts.
func (f *forward) runAll(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	return f.resume(ctx)
}

// resume runs a forward from op next on until it is done or halts.
func (f *forward) resume(ctx context.Context) error {
	if err := f.run(ctx); err != nil || f.next < f.end {
		return err
	}
	return f.finish()
}

// segment is a range of ops that was submitted.
type segment struct {
	from, to int
	commands device.Commands
	recorded bool // the set keeps the commands
	ticket   device.Ticket
	began    time.Time
}

// free frees the commands of a segment that is complete.
func (s *segment) free() error {
	if s.recorded {
		return nil
	}
	return s.commands.Free()
}

// begin prepares the inputs of the batch, which the first segment copies, and submits copies of the
// blocks that the device lacks.
func (f *forward) begin(ctx context.Context) error {
	if f.static != nil {
		f.static.Sweep() // no segment is in flight
	}
	s := f.set
	s.mark.submitted++
	s.in.describe(f.batch, f.layers.Kinds, s.mark.submitted)
	var bytes uint64
	if s.byRow = f.blocks.copiesRows(f.batch.Rows()); s.byRow {
		s.staged, bytes = f.blocks.rows(s.staged[:0], f.batch.Rows())
	} else {
		s.staged, bytes = f.blocks.of(func(store int) (blocks []kvcache.BlockID) {
			for _, g := range s.in.stores[store].list {
				blocks = append(blocks, g.Block)
			}
			return blocks
		})
	}
	if err := s.resize(f.dev, &s.stage, bytes, f.blocks.host); err != nil {
		return err
	}
	if err := s.resize(f.dev, &s.logits, f.stagedLogits(), f.blocks.host); err != nil {
		return err
	}
	if err := f.resizeParts(); err != nil {
		return err
	}
	op := &f.model.Ops[0]
	if op.Kind != model.OpEmbed {
		return unsupported("a model that does not begin with an embedding")
	}
	if err := f.sendInputs(op); err != nil {
		return err
	}
	if f.batch.Rows() < minStatic { // static kernels come and go
		s.shape = s.in.shape(s.shape[:0], f.batch, s.staged)
	} else {
		s.shape = s.shape[:0]
	}
	if err := s.recorded.limit(); err != nil {
		return err
	}
	stale := f.mirror.begin(f.batch.Spans, f.coming)
	if err := f.uploads.submit(ctx, f.staleBlocks(stale)); err != nil {
		f.mirror.forget(stale)
		return err
	}
	return nil
}

// staleBlocks lists blocks of the cores that the device lacks, for all layers of their stores.
func (f *forward) staleBlocks(stale []staleBlock) []stagedBlock {
	list, _ := f.blocks.of(func(store int) (blocks []kvcache.BlockID) {
		for _, b := range stale {
			if b.store == store {
				blocks = append(blocks, b.block)
			}
		}
		return blocks
	})
	return list
}

// run submits segments until the forward is done or halts.
func (f *forward) run(ctx context.Context) error {
	submitted := f.next
	for {
		if f.onCores.Has(submitted) && len(f.flying) == 0 && !f.halted {
			if err := f.runOnCores(f.onCores.Next(submitted)); err != nil {
				return err
			}
			submitted = f.next
			continue
		}
		for !f.halted && submitted < f.end && len(f.flying) < inFlight && !f.onCores.Has(submitted) {
			to := f.segmentEnd(submitted)
			ready, err := f.canRead(submitted, to)
			if err == nil && ready {
				err = f.submit(submitted, to)
			}
			if err != nil {
				return f.drain(ctx, err)
			}
			if !ready {
				break
			}
			submitted = to
		}
		if len(f.flying) == 0 {
			return nil
		}
		if err := f.complete(ctx); err != nil {
			return f.drain(ctx, err)
		}
	}
}

// canRead reports whether the keys and values that the ops [from, to) read are on the device. It
// waits for them if no segment is in flight.
func (f *forward) canRead(from, to int) (ready bool, err error) {
	if f.reads == nil {
		return true, nil
	}
	for op := from; op < to; op++ {
		if f.model.Ops[op].Kind != model.OpAttention {
			continue
		}
		ready, wait, err := f.reads(op)
		if err == nil && !ready && len(f.flying) == 0 {
			ready, err = true, wait()
		}
		if errors.Is(err, errPaused) {
			f.halted = true
			return false, nil
		}
		if err != nil || !ready {
			return false, err
		}
	}
	return true, nil
}

// segmentEnd returns the op before which a segment ends: after as many ops as fit the bound by
// prediction, at least one.
func (f *forward) segmentEnd(from int) int {
	end := min(from+unboundedOps, f.end)
	if f.batch.Rows() >= minStatic && !f.blocks.shared {
		end = min(from+unboundedLong, f.end)
	}
	if p := f.onCores.Next(from); p != nil {
		end = min(end, p.From)
	}
	if f.byLayer {
		for op := from; op < end; op++ {
			if f.model.Ops[op].Kind == model.OpRotate {
				end = op + 1
			}
		}
	}
	bound := f.bound
	if bound <= 0 {
		bound = longestSegment
	}
	return f.times.fit(from, end, f.batch, bound)
}

func (f *forward) submit(from, to int) error {
	if p := f.onCores.Before(from); p != nil {
		if err := f.set.border.Put(p, f.model, f.cores.Buffers, f.batch.Rows()); err != nil {
			return err
		}
	}
	s, err := f.segment(from, to)
	if err != nil {
		return err
	}
	f.uploads.segment.Store(int64(f.times.limit(from, to, f.batch)))
	s.began = time.Now()
	if s.ticket, err = f.dev.Submit(s.commands); err != nil {
		return errors.Join(err, s.free())
	}
	f.flying = append(f.flying, s)
	return nil
}

// complete waits for the oldest segment, takes its keys and values, and asks the gate.
func (f *forward) complete(ctx context.Context) error {
	s := f.flying[0]
	err := f.wait(ctx, &s)
	f.flying = f.flying[1:]
	if err != nil {
		f.set.recorded.abandon() // the commands may be pending
		return err
	}
	if err = s.free(); err != nil {
		return err
	}
	now := time.Now()
	f.times.learn(now.Sub(s.began), s.from, s.to, f.batch)
	if len(f.flying) > 0 {
		f.flying[0].began = now
	}
	if err := f.take(&s); err != nil {
		return err
	}
	f.next = s.to
	if f.gate != nil && f.gate.Passed(f.cores.stepOf(s.to)) {
		f.halted = true
	}
	return nil
}

// wait waits for a segment as long as it may take.
func (f *forward) wait(ctx context.Context, s *segment) error {
	return await(ctx, f.dev, s.ticket, f.times.limit(s.from, s.to, f.batch))
}

// take copies the keys and values of a segment to the cores' cache.
func (f *forward) take(s *segment) error {
	if err := f.marks.check(f.set.mark.at, s.from, f.set.mark.submitted); err != nil {
		return err
	}
	if s.from == 0 { // the forward may read blocks that were uploaded before
		if err := f.uploads.complete(); err != nil {
			return err
		}
	}
	list := between(f.set.staged, s.from, s.to)
	if f.set.byRow {
		return f.blocks.scatterRows(list, f.set.stage, f.set.in.stores)
	}
	if err := f.blocks.scatter(list, f.set.stage); err != nil {
		return err
	}
	return f.checkKV(s.from, s.to)
}

// drain waits for segments in flight, whose results are not used, after a forward failed. It does
// not wait for a device that is lost or hangs, and returns the error of one that hangs.
func (f *forward) drain(ctx context.Context, failed error) error {
	for len(f.flying) > 0 && !errors.Is(failed, device.ErrLost) {
		s := f.flying[0]
		f.flying = f.flying[1:]
		err := f.wait(context.WithoutCancel(ctx), &s)
		if err == nil {
			err = s.free()
		} else {
			f.set.recorded.abandon()
		}
		failed = errors.Join(failed, err)
	}
	f.flying = nil
	return failed
}
