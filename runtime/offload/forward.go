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

// ErrResult says that the device returned results that are not finite, or none. The caller computes
// the rows on the cores, which decides whether the model's numbers overflow.
var ErrResult = errors.New("the device returned invalid results")

// Limits of a forward.
const (
	inFlight     = 2               // segments that are submitted at once
	firstTimeout = time.Minute     // for segments of unknown duration
	leastTimeout = 5 * time.Second // for others, in addition to patience times the prediction
	patience     = 20
	perRowUnit   = 1024
	unboundedOps = 64 // ops of a segment without a bound
)

// Forward runs a batch from op `from` on and returns the next op: the number of ops when it is
// done, less when the gate halted it. To resume, call it with the same batch, set and op; other
// forwards may run on other sets in between. A segment takes at most the bound by prediction (0: no
// bound), and at most two are in flight, so a forward halts within two segments. The gate may be
// nil.
//
// Keys and values of a segment are in the cores' cache when the gate is asked about it. An error
// means that the forward must be computed again on the cores from its first op; it wraps
// device.ErrLost if the device cannot be used any more, or ErrResult.
func (r *Runner) Forward(ctx context.Context, set int, b *kvcache.Batch, from int, bound time.Duration,
	gate exec.Gate) (next int, err error) {
	if b.Rows() == 0 || b.Rows() > r.rows {
		return from, fmt.Errorf("a forward of %d rows on a device; it has room for %d", b.Rows(), r.rows)
	}
	f := forward{Runner: r, set: r.sets[set], batch: b, bound: bound, gate: gate, next: from, end: len(r.model.Ops)}
	if len(b.LogitRows) == 0 {
		f.end = slices.IndexFunc(r.model.Ops, func(op model.Op) bool { return op.Kind == model.OpGather })
	}
	if from == 0 {
		if err := f.begin(); err != nil {
			return from, err
		}
	}
	if err := f.run(ctx); err != nil {
		return from, err
	}
	if f.next < f.end {
		return f.next, nil
	}
	if err := f.finish(); err != nil {
		return from, err
	}
	return len(r.model.Ops), nil
}

// forward is a forward in progress.
type forward struct {
	*Runner
	set   *set
	batch *kvcache.Batch
	bound time.Duration
	gate  exec.Gate
	next  int // first op that is not complete
	end   int

	flying []segment
	halted bool
}

// segment is a range of ops that was submitted.
type segment struct {
	from, to int
	commands device.Commands
	ticket   device.Ticket
	began    time.Time
}

// begin copies the inputs of the batch and the blocks that the device lacks.
func (f *forward) begin() error {
	s := f.set
	s.in.describe(f.batch, f.layers.Kinds)
	if err := f.stage(); err != nil {
		return err
	}
	op := &f.model.Ops[0]
	if op.Kind != model.OpEmbed {
		return unsupported("a model that does not begin with an embedding")
	}
	x, err := f.embed(f.batch, op)
	if err != nil {
		return err
	}
	if err := f.upload(&s.acts[model.BufX], bytesOf(x)); err != nil {
		return err
	}
	if err := f.upload(&s.in.angles, bytesOf(f.fillAngles(f.batch))); err != nil {
		return err
	}
	if err := f.upload(&s.in.words, bytesOf(s.in.host)); err != nil {
		return err
	}
	return f.uploadBlocks(f.mirror.begin(f.batch.Spans))
}

func (f *forward) upload(to *device.Slice, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := f.resize(to, uint64(len(data)), device.DeviceLocal); err != nil {
		return err
	}
	return f.dev.Write(to.Buffer, 0, data)
}

// uploadBlocks copies KV blocks of the cores to the device, for all layers of their stores.
func (f *forward) uploadBlocks(stale []staleBlock) error {
	for _, b := range stale {
		for layer, store := range f.layers.Of {
			if store != b.store || !f.layers.Keeps(layer) {
				continue
			}
			p := f.kv.Place(layer)
			at := uint64(p.First + int(b.block)*p.Block)
			if err := f.dev.Write(f.mem.kv.Buffer, at, f.kv.Block(layer, b.block)); err != nil {
				f.mirror.forget(stale)
				return err
			}
		}
	}
	return nil
}

// stage plans the copies of the blocks that the batch writes.
func (f *forward) stage() error {
	s, at := f.set, uint64(0)
	s.staged = s.staged[:0]
	for i := range f.model.Ops {
		op := &f.model.Ops[i]
		if op.Kind != model.OpRotate || op.KVLayer != op.Layer {
			continue
		}
		length := f.kv.Place(op.Layer).Block
		for _, g := range s.in.stores[f.layers.Of[op.Layer]].list {
			s.staged = append(s.staged, stagedBlock{op: i, layer: op.Layer, block: int(g.Block), at: at,
				length: length})
			at += uint64((length + alignment - 1) / alignment * alignment)
		}
	}
	return f.resize(&s.stage, at, f.usage())
}

// run submits segments until the forward is done or halts.
func (f *forward) run(ctx context.Context) error {
	submitted := f.next
	for {
		for !f.halted && submitted < f.end && len(f.flying) < inFlight {
			to := f.segmentEnd(submitted)
			if err := f.submit(submitted, to); err != nil {
				return errors.Join(err, f.drain(ctx))
			}
			submitted = to
		}
		if len(f.flying) == 0 {
			return nil
		}
		if err := f.complete(ctx); err != nil {
			return errors.Join(err, f.drain(ctx))
		}
	}
}

// segmentEnd returns the op before which a segment ends: after as many ops as fit the bound by
// prediction, at least one.
func (f *forward) segmentEnd(from int) int {
	n := unboundedOps
	if f.bound > 0 {
		n = 1
		if f.perRow > 0 {
			n = int(max(1, min(unboundedOps, f.bound/f.predicted(1))))
		}
	}
	return min(from+n, f.end)
}

// predicted returns the predicted time of n ops.
func (f *forward) predicted(n int) time.Duration {
	return max(1, f.perRow*time.Duration(n*f.batch.Rows())/perRowUnit)
}

func (f *forward) submit(from, to int) error {
	c := recorder{Runner: f.Runner, set: f.set, batch: f.batch}
	for i := from; i < to; i++ {
		c.op(i)
	}
	f.set.submitted = (f.set.submitted + 1) % countedSegments
	c.steps = append(c.steps, device.Copy{To: f.set.mark, Bytes: alignment,
		From: device.Slice{Buffer: f.set.count.Buffer, Offset: uint64(alignment * int(f.set.submitted))}})
	if c.err != nil {
		return c.err
	}
	commands, err := f.dev.Record(c.steps...)
	if err != nil {
		return err
	}
	s := segment{from: from, to: to, commands: commands, began: time.Now()}
	if s.ticket, err = f.dev.Submit(commands); err != nil {
		return errors.Join(err, commands.Free())
	}
	f.flying = append(f.flying, s)
	return nil
}

// complete waits for the oldest segment, takes its keys and values, and asks the gate.
func (f *forward) complete(ctx context.Context) error {
	s := f.flying[0]
	err := f.wait(ctx, &s)
	f.flying = f.flying[1:]
	if err == nil { // else the commands may be pending
		err = s.commands.Free()
	}
	if err != nil {
		return err
	}
	now := time.Now()
	f.learn(now.Sub(s.began), s.to-s.from)
	if len(f.flying) > 0 {
		f.flying[0].began = now
	}
	if err := f.take(&s); err != nil {
		return err
	}
	f.next = s.to
	if f.gate != nil && f.gate.Passed(s.to) {
		f.halted = true
	}
	return nil
}

// wait waits for a segment as long as it may take.
func (f *forward) wait(ctx context.Context, s *segment) error {
	timeout := firstTimeout
	if f.perRow > 0 {
		timeout = leastTimeout + patience*f.predicted(s.to-s.from)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f.dev.Wait(limited, s.ticket)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no result after %v", device.ErrLost, timeout)
	}
	return err
}

// learn takes the time of a segment into the prediction.
func (f *forward) learn(took time.Duration, ops int) {
	per := took * perRowUnit / time.Duration(ops*f.batch.Rows())
	if f.perRow == 0 {
		f.perRow = per
	}
	f.perRow += (per - f.perRow) / 8
}

// take copies the keys and values of a segment to the cores' cache.
func (f *forward) take(s *segment) error {
	if len(f.flying) == 0 { // else the next segment may have overwritten the mark
		if err := f.checkMark(); err != nil {
			return err
		}
	}
	for i := range f.set.staged {
		b := &f.set.staged[i]
		if b.op < s.from || b.op >= s.to {
			continue
		}
		if err := f.read(f.set.stage, b.at, f.kv.Block(b.layer, kvcache.BlockID(b.block))[:b.length]); err != nil {
			return err
		}
	}
	return nil
}

// checkMark returns ErrResult if the device did not run the last segment.
func (f *forward) checkMark() error {
	mark := make([]uint32, 4)
	if err := f.read(f.set.mark, 0, bytesOf(mark)); err != nil {
		return err
	}
	if mark[0] != f.set.submitted {
		return fmt.Errorf("%w: segment %d was not run", ErrResult, f.set.submitted)
	}
	return nil
}

// drain waits for segments in flight, whose results are not used, unless the device is lost.
func (f *forward) drain(ctx context.Context) (err error) {
	for len(f.flying) > 0 {
		s := f.flying[0]
		f.flying = f.flying[1:]
		if f.dev.Err() == nil && f.wait(context.WithoutCancel(ctx), &s) == nil {
			err = errors.Join(err, s.commands.Free())
		}
	}
	return err
}

// finish reads the logits and records what both caches have.
func (f *forward) finish() error {
	f.mirror.deviceWrote(f.batch.Spans)
	if len(f.batch.LogitRows) == 0 {
		return f.checkKV()
	}
	stride := f.strides[model.BufLogits]
	f.logits = slices.Grow(f.logits[:0], len(f.batch.LogitRows)*stride)[:len(f.batch.LogitRows)*stride]
	if err := f.dev.Read(f.set.acts[model.BufLogits].Buffer, 0, bytesOf(f.logits)); err != nil {
		return err
	}
	for i := range f.batch.LogitRows {
		if !finite(f.Logits(i)) {
			return fmt.Errorf("%w: the logits are not finite", ErrResult)
		}
	}
	return f.checkKV()
}

// checkKV returns ErrResult if the last row of a segment has keys or values that are not finite.
func (f *forward) checkKV() error {
	for i := range f.set.in.stores {
		for _, g := range f.set.in.stores[i].list {
			for layer, store := range f.layers.Of {
				if store != i || !f.layers.Keeps(layer) {
					continue
				}
				if at := (g.Pos + g.N - 1) % kvcache.BlockTokens; !f.assembly.KV.Finite(layer, g.Block, at) {
					return fmt.Errorf("%w: layer %d has keys or values that are not finite", ErrResult, layer)
				}
			}
		}
	}
	return nil
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
