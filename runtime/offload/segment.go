package offload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// sendInputs writes embeddings, angles and words to host-visible memory and notes the copies to the
// buffers of the set.
func (f *forward) sendInputs(op *model.Op) error {
	s, rows := f.set, f.batch.Rows()
	embeddings, angles := rows*f.strides[model.BufX], len(f.ropes)*rows*f.angleWidth
	at := uint64(0)
	s.inputs = s.inputs[:0]
	for _, part := range []struct {
		to    *device.Slice
		words int
	}{{&s.acts[model.BufX], embeddings}, {&s.in.angles, angles}, {&s.in.words, len(s.in.host)}} {
		n := uint64(4 * part.words)
		if err := s.resize(f.dev, part.to, n, device.DeviceLocal); err != nil {
			return err
		}
		if n > 0 {
			s.inputs = append(s.inputs, device.Copy{To: *part.to, From: device.Slice{Offset: at}, Bytes: n})
		}
		at += n
	}
	if err := s.resize(f.dev, &s.inbox, at, f.blocks.host); err != nil {
		return err
	}
	for i := range s.inputs {
		s.inputs[i].From.Buffer = s.inbox.Buffer
	}
	host := s.inbox.Buffer.Host()
	if host == nil {
		s.outbox = slices.Grow(s.outbox[:0], int(at))[:at]
		host = s.outbox
	}
	words := unsafe.Slice((*float32)(unsafe.Pointer(&host[0])), at/4)
	if err := f.fill(op, words[:embeddings], words[embeddings:][:angles]); err != nil {
		return err
	}
	copy(host[4*(embeddings+angles):], bytesOf(s.in.host))
	if s.outbox != nil {
		return f.dev.Write(s.inbox.Buffer, 0, s.outbox)
	}
	return nil
}

// fill writes the scaled embeddings of the batch's tokens, [rows][stride], and the cosines and
// sines of its positions, [ropes][rows][width]. The memory may be slow to read.
func (f *forward) fill(op *model.Op, embeddings, angles []float32) error {
	hidden, stride := f.model.Dims.Hidden, f.strides[model.BufX]
	var rotated attention.Angles
	if len(angles) > 0 {
		rotated = attention.NewAngles(f.model, f.batch.Rows(), unsafe.Pointer(&angles[0]))
	}
	return divide(f.batch.Rows(), minFilled, func(from, to int) error {
		padded := make([]float32, stride)
		row := padded[:hidden]
		for i := from; i < to; i++ {
			if err := f.assembly.Weights.Tokens.Row(row, int(f.batch.Tokens[i])); err != nil {
				return err
			}
			if op.Scale != 1 {
				for k := range row {
					row[k] *= op.Scale
				}
			}
			copy(embeddings[i*stride:], padded)
		}
		if len(angles) == 0 {
			return nil
		}
		for i := range f.batch.Spans {
			s := &f.batch.Spans[i]
			for row := max(from, s.Row); row < min(to, s.Row+s.Rows); row++ {
				f.ropes.Fill(&rotated, row, s.Pos+row-s.Row)
			}
		}
		return nil
	})
}

// minFilled is the least number of rows that a goroutine fills.
const minFilled = 16

// resizeParts makes room for the results of blocks of the batch, unless they take too much memory.
func (f *forward) resizeParts() error {
	var most uint64
	for i := range f.model.Ops {
		op := &f.model.Ops[i]
		if op.Kind != model.OpAttention || f.onCores.Has(i) {
			continue
		}
		s := &f.set.in.stores[f.layers.Of[op.Layer]]
		if part, _, ok := partsOf(op, s.longest); ok {
			most = max(most, partBytes(op, part, s))
		}
	}
	if most > maxPartBytes {
		return nil
	}
	err := f.set.resize(f.dev, &f.set.parts, most, device.DeviceLocal)
	if errors.Is(err, device.ErrMemory) {
		return nil
	}
	return err
}

// segment returns a segment with the ops [from, to) that is not submitted. Forwards of the same
// shape use the same commands.
func (f *forward) segment(from, to int) (segment, error) {
	s := segment{from: from, to: to}
	reusable := len(f.set.shape) > 0
	if reusable {
		if s.commands = f.set.recorded.find(f.set.shape, from, to); s.commands != nil {
			s.recorded = true
			return s, nil
		}
	}
	steps, err := f.steps(from, to)
	if err != nil {
		return s, err
	}
	if s.commands, err = f.dev.Record(steps...); err != nil {
		return s, err
	}
	if reusable {
		f.set.recorded.keep(f.set.shape, from, to, s.commands)
		s.recorded = true
	}
	return s, nil
}

// steps returns the steps of the ops [from, to). They are the same for batches of one shape, see
// inputs.shape.
func (f *forward) steps(from, to int) ([]device.Step, error) {
	c := recorder{Runner: f.Runner, set: f.set, batch: f.batch}
	rows := f.batch.Rows()
	if from == 0 {
		for _, in := range f.set.inputs {
			c.steps = append(c.steps, in)
		}
	}
	if p := f.onCores.Before(from); p != nil {
		c.steps = append(c.steps, f.set.border.FromStage(p, &f.set.acts, rows)...)
	}
	for i := from; i < to; i++ {
		c.op(i)
	}
	if p := f.onCores.Next(to); p != nil && p.From == to {
		c.steps = append(c.steps, f.set.border.ToStage(p, &f.set.acts, rows)...)
	}
	if staged := between(f.set.staged, from, to); f.set.byRow {
		c.gather(staged)
	} else {
		c.steps = append(c.steps, f.blocks.copies(staged, f.set.stage, true)...)
	}
	if n := f.stagedLogits(); n > 0 && to == len(f.model.Ops) {
		c.steps = append(c.steps, device.Copy{To: f.set.logits, From: f.set.acts[model.BufLogits], Bytes: n})
	}
	c.steps = append(c.steps, markOf(f.set.mark.at, from, f.set.in.at(f.set.in.number)))
	return c.steps, c.err
}

// finish reads the logits and records the positions that both caches hold.
func (f *forward) finish() error {
	f.mirror.wrote(f.batch.Spans)
	if len(f.batch.LogitRows) == 0 {
		return nil
	}
	n := len(f.batch.LogitRows) * f.strides[model.BufLogits]
	f.logits = slices.Grow(f.logits[:0], n)[:n]
	if f.stagedLogits() > 0 {
		copy(bytesOf(f.logits), f.set.logits.Buffer.Host())
	} else if err := f.dev.Read(f.set.acts[model.BufLogits].Buffer, 0, bytesOf(f.logits)); err != nil {
		return err
	}
	for i := range f.batch.LogitRows {
		if !finite(f.Logits(i)) {
			return fmt.Errorf("%w: the logits are not finite", ErrResult)
		}
	}
	return nil
}

// maxStagedLogits limits the logits that the last segment copies to host-visible memory, in bytes.
const maxStagedLogits = 16 << 20

// stagedLogits returns the bytes of logits that the last segment copies to host-visible memory, so
// that no other submission is needed to read them; 0: none.
func (f *forward) stagedLogits() uint64 {
	n := uint64(4 * len(f.batch.LogitRows) * f.strides[model.BufLogits])
	if n > maxStagedLogits || f.blocks.host == device.DeviceLocal {
		return 0
	}
	return n
}

// checkKV returns ErrResult if the ops [from, to) have written keys or values to the last row of a
// segment that are not finite.
func (f *forward) checkKV(from, to int) error {
	for i := from; i < to; i++ {
		op := &f.model.Ops[i]
		if op.Kind != model.OpRotate {
			continue
		}
		for _, g := range f.set.in.stores[f.layers.Of[op.Layer]].list {
			if at := (g.Pos + g.N - 1) % kvcache.BlockTokens; !f.assembly.KV.Finite(op.Layer, g.Block, at) {
				return fmt.Errorf("%w: layer %d has keys or values that are not finite", ErrResult, op.Layer)
			}
		}
	}
	return nil
}

// finite reports whether no number is infinite or NaN.
func finite(x []float32) bool {
	// Adding 1 to an exponent of ones sets the bit above it. Words have two numbers.
	const exponents, ones, carries = 0x7F800000_7F800000, 0x00800000_00800000, 0x80000000_80000000
	var a, b, c, d uint64
	data := bytesOf(x)
	for ; len(data) >= 32; data = data[32:] {
		a |= binary.NativeEndian.Uint64(data)&exponents + ones
		b |= binary.NativeEndian.Uint64(data[8:])&exponents + ones
		c |= binary.NativeEndian.Uint64(data[16:])&exponents + ones
		d |= binary.NativeEndian.Uint64(data[24:])&exponents + ones
	}
	for ; len(data) > 0; data = data[4:] {
		a |= uint64(binary.NativeEndian.Uint32(data))&exponents + ones
	}
	return (a|b|c|d)&carries == 0
}
