package exec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/moe"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Buffers are the activations of one forward: a row per token, off the Go heap, allocated once.
// Prefill and decode share them, since a forward is one or the other. Strides keep equal columns of
// adjacent rows out of one cache set.
type Buffers struct {
	ranks     []tp.Activations
	memory    []*mem.Buffer // by rank
	angles    attention.Angles
	routes    moe.Routes
	steps     []uint16 // of each op of the forward on them; empty: every op has one step
	rows      int
	logitRows int
}

// shared reports whether all ranks read a buffer, and write it one after the other: those that are
// as wide as the model. BufLogits is shared too; each rank writes its own columns.
func shared(b model.Buf) bool {
	return b == model.BufX || b == model.BufH || b == model.BufRouter || b == model.BufLogits
}

// bufferLayout has the offset of each buffer of a rank in one piece of memory.
type bufferLayout struct {
	offset          [model.NumBufs]int
	stride          [model.NumBufs]int
	angles          int
	quantized       [tp.Paths]int
	quantizedStride [tp.Paths]int
	routes          int
	total           int
}

func (l *bufferLayout) reserve(bytes int) int {
	at := l.total
	l.total += raw.Lines(bytes)
	return at
}

// layOut places the buffers of a rank. Only the first rank has memory for shared ones.
func layOut(p *tp.Shard, rows, logitRows int, k tp.QuantizedK) (l bufferLayout) {
	m := p.Model
	largest := rows // of any buffer that a product reads
	for i := range model.NumBufs {
		l.stride[i] = mem.RowStride(m.Width(i))
		n := m.RowsOf(i, rows)
		largest = max(largest, n)
		if i == model.BufLogits {
			n = logitRows
		}
		if p.First || !shared(i) {
			l.offset[i] = l.reserve(4 * n * l.stride[i])
		}
	}
	if p.First {
		l.angles = l.reserve(attention.AngleBytes(m, rows))
		l.routes = l.reserve(moe.Bytes(m.Experts, rows))
	}
	for c, longest := range k {
		if longest > 0 {
			l.quantizedStride[c] = tp.QuantizedRowBytes(microkernel.Compute(c), longest)
			l.quantized[c] = l.reserve(largest * l.quantizedStride[c])
		}
	}
	return l
}

// bufferBytes returns the most memory that newBuffers allocates under a plan.
func bufferBytes(p *tp.Shards, plan *plans.Plan, rows, logitRows int) (total int64) {
	var k tp.QuantizedK
	for i := range p.Whole.Weights {
		w := &p.Whole.Weights[i]
		if c, err := load.PathOf(plan, w); err == nil {
			k.Add(c, w.K)
		}
	}
	k.AddHeads(p.Whole, func(i int) []microkernel.Compute {
		c, _ := load.PathOf(plan, &p.Whole.Weights[i])
		return []microkernel.Compute{c}
	})
	for r := range p.List {
		total += int64(layOut(&p.List[r], rows, logitRows, k).total)
	}
	return total
}

// newBuffers allocates activations for forwards of at most rows tokens, of which at most logitRows
// want logits, on the node of each rank. k has the longest rows that weights read in quantized
// form.
func newBuffers(p *tp.Shards, rows, logitRows int, k tp.QuantizedK) (*Buffers, error) {
	b := &Buffers{rows: rows, logitRows: logitRows}
	for r := range p.List {
		shard := &p.List[r]
		l := layOut(shard, rows, logitRows, k)
		memory, err := mem.Alloc(l.total, mem.Options{Node: shard.Node, Huge: true})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("activations of %d rows: %w", rows, err), b.Free())
		}
		at := func(off int) unsafe.Pointer { return unsafe.Add(memory.Pointer(), off) }
		own := tp.Activations{Stride: l.stride}
		for c := range own.Quantized {
			own.Quantized[c] = tp.QuantizedRows{Compute: microkernel.Compute(c), Base: at(l.quantized[c]),
				Stride: l.quantizedStride[c]}
		}
		for i := range model.NumBufs {
			own.Base[i] = at(l.offset[i])
			if r > 0 && shared(i) {
				own.Base[i], own.Stride[i] = b.ranks[0].Base[i], b.ranks[0].Stride[i]
			}
		}
		own.Base[model.BufLogits] = unsafe.Add(own.Base[model.BufLogits], 4*shard.Share.Vocab.Lo)
		if shard.First {
			b.angles = attention.NewAngles(p.Whole, rows, at(l.angles))
			b.routes = moe.New(p.Whole.Experts, rows, at(l.routes))
		}
		b.ranks, b.memory = append(b.ranks, own), append(b.memory, memory)
	}
	return b, nil
}

// Free releases the memory. No forward may run then or later.
func (b *Buffers) Free() (err error) {
	for _, m := range b.memory {
		err = errors.Join(err, m.Free())
	}
	return err
}

// Bytes returns the size of all activations.
func (b *Buffers) Bytes() (total int) {
	for _, m := range b.memory {
		total += m.Len()
	}
	return total
}

// Rows returns an activation of the first rank.
func (b *Buffers) Rows(buf model.Buf) tp.Rows { return b.ranks[0].Rows(buf) }

// Memory returns the buffer of a rank.
func (b *Buffers) Memory(rank int) *mem.Buffer { return b.memory[rank] }

// Cut divides op i of the next forward on these buffers into steps[i] steps; 0 and 1 leave it
// whole, and nil all ops. A halted forward keeps its steps with its activations. Only ops for which
// Cuttable is true are divided. Inside a parallel subgraph all ranks wait for each other after
// every step of an op with an entry above 0, so that the forward may halt there.
func (b *Buffers) Cut(steps []uint16) { b.steps = append(b.steps[:0], steps...) }

// joint reports whether all ranks wait for each other after each step of op i because of Cut.
func (b *Buffers) joint(i int) bool { return i < len(b.steps) && b.steps[i] > 0 }

// stepsOf returns the number of steps of op i.
func (b *Buffers) stepsOf(i int) int {
	if i >= len(b.steps) {
		return 1
	}
	return max(1, int(b.steps[i]))
}

// position is a step of an op in the list of all steps.
type position struct {
	op   int
	step tp.Step
}

// locate returns the position of step number index.
func (b *Buffers) locate(index int) (p position) {
	for index >= b.stepsOf(p.op) {
		index -= b.stepsOf(p.op)
		p.op++
	}
	p.step = tp.Step{Index: index, Count: b.stepsOf(p.op)}
	return p
}

// after returns the position of the next step.
func (b *Buffers) after(p position) position {
	if !p.step.Last() {
		return position{p.op, tp.Step{Index: p.step.Index + 1, Count: p.step.Count}}
	}
	return position{p.op + 1, tp.Step{Count: b.stepsOf(p.op + 1)}}
}

// Cuttable reports whether an op can be divided into steps.
func Cuttable(op *model.Op) bool {
	return op.Kind == model.OpMatMul || op.Kind == model.OpAttention || op.Kind == model.OpExperts ||
		op.Kind == model.OpDelta
}
