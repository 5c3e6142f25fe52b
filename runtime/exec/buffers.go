package exec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Buffers are the activations of one forward: a row per token, off the Go heap, allocated once.
// Prefill and decode share them, since a forward is one or the other. Rows are strided so that
// equal columns of neighbouring rows do not fall into one cache set.
type Buffers struct {
	ranks     []rankBuffers
	rotations unsafe.Pointer // [ropes][rows][turned]float32: cosines, then sines, of each row's position
	turned    int            // the most dimensions of a head that rotate
	routes    routes
	cuts      []uint16 // of each op of the forward on them; empty: none is cut
	rows      int
	logitRows int
}

// rankBuffers are the activations as one rank sees them: its own, and views of those that all
// share, which are in the first rank's memory.
type rankBuffers struct {
	memory  *mem.Buffer
	base    [model.NumBufs]unsafe.Pointer
	stride  [model.NumBufs]int // float32 elements between rows
	rounded [paths]roundedRows
}

// shared tells which buffers all ranks read, and write in turn: what is as wide as the model.
// BufLogits is shared too, each rank writing its own columns.
func shared(b model.Buf) bool {
	return b == model.BufX || b == model.BufH || b == model.BufRouter || b == model.BufLogits
}

const cacheLine = 64

// bufferLayout is where each buffer of a rank begins in one piece of memory.
type bufferLayout struct {
	offset        [model.NumBufs]int
	stride        [model.NumBufs]int
	rotations     int
	rounded       [paths]int
	roundedStride [paths]int
	routes        int
	total         int
}

func (l *bufferLayout) reserve(bytes int) int {
	at := l.total
	l.total += (bytes + cacheLine - 1) / cacheLine * cacheLine
	return at
}

// layOut places a rank's buffers; those that are shared have room with the first rank only.
func (p *shard) layOut(rows, logitRows int, k roundedK) (l bufferLayout) {
	m := p.model
	most := rows // of any buffer that a product reads
	for i := range model.NumBufs {
		l.stride[i] = mem.RowStride(m.Width(i))
		n := m.RowsOf(i, rows)
		most = max(most, n)
		if i == model.BufLogits {
			n = logitRows
		}
		if p.first || !shared(i) {
			l.offset[i] = l.reserve(4 * n * l.stride[i])
		}
	}
	if p.first {
		l.rotations = l.reserve(4 * len(m.Ropes()) * rows * mostTurned(m))
		l.routes = l.reserve(routeBytes(m.Experts, rows))
	}
	for c, longest := range k {
		if longest > 0 {
			l.roundedStride[c] = RoundedRowBytes(microkernel.Compute(c), longest)
			l.rounded[c] = l.reserve(most * l.roundedStride[c])
		}
	}
	return l
}

// bufferBytes is what newBuffers will allocate at most under a plan.
func (p *Shards) bufferBytes(plan *plans.Plan, rows, logitRows int) (total int64) {
	var k roundedK
	for i := range p.Whole.Weights {
		w := &p.Whole.Weights[i]
		if c, err := computeOf(plan, w); err == nil {
			k.count(c, w.K)
		}
	}
	k.countHeads(p.Whole, func(i int) []microkernel.Compute {
		c, _ := computeOf(plan, &p.Whole.Weights[i])
		return []microkernel.Compute{c}
	})
	for r := range p.list {
		total += int64(p.list[r].layOut(rows, logitRows, k).total)
	}
	return total
}

// newBuffers allocates activations for forwards of at most rows tokens of which at most logitRows
// want logits, each rank's on its node. k is the longest rows that weights read in rounded form.
func newBuffers(p *Shards, rows, logitRows int, k roundedK) (*Buffers, error) {
	b := &Buffers{rows: rows, logitRows: logitRows, turned: mostTurned(p.Whole)}
	for r := range p.list {
		shard := &p.list[r]
		l := shard.layOut(rows, logitRows, k)
		memory, err := mem.Alloc(l.total, mem.Options{Node: shard.node, Huge: true})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("activations of %d rows: %w", rows, err), b.Free())
		}
		at := func(off int) unsafe.Pointer { return unsafe.Add(memory.Pointer(), off) }
		own := rankBuffers{memory: memory, stride: l.stride}
		for c := range own.rounded {
			own.rounded[c] = roundedRows{compute: microkernel.Compute(c), base: at(l.rounded[c]),
				stride: l.roundedStride[c]}
		}
		for i := range model.NumBufs {
			own.base[i] = at(l.offset[i])
			if r > 0 && shared(i) {
				own.base[i], own.stride[i] = b.ranks[0].base[i], b.ranks[0].stride[i]
			}
		}
		own.base[model.BufLogits] = unsafe.Add(own.base[model.BufLogits], 4*shard.share.Vocab.Lo)
		if shard.first {
			b.rotations = at(l.rotations)
			b.routes = newRoutes(p.Whole.Experts, rows, at(l.routes))
		}
		b.ranks = append(b.ranks, own)
	}
	return b, nil
}

// Free returns the memory; no forward may run then or afterwards.
func (b *Buffers) Free() (err error) {
	for i := range b.ranks {
		err = errors.Join(err, b.ranks[i].memory.Free())
	}
	return err
}

// Bytes is the size of all activations.
func (b *Buffers) Bytes() (total int) {
	for i := range b.ranks {
		total += b.ranks[i].memory.Len()
	}
	return total
}

// row points at the first element of a row.
func (b *rankBuffers) row(buf model.Buf, r int) *float32 {
	return (*float32)(unsafe.Add(b.base[buf], 4*r*b.stride[buf]))
}

// rowsOf is a buffer as rows.
func (b *rankBuffers) rowsOf(buf model.Buf) Rows { return Rows{(*float32)(b.base[buf]), b.stride[buf]} }

// rotation points at the cosines and sines of a row's position, by one of the model's ropes.
func (b *Buffers) rotation(rope, r int) *float32 {
	return (*float32)(unsafe.Add(b.rotations, 4*(rope*b.rows+r)*b.turned))
}

// mostTurned is the most dimensions of a head that a model's ropes turn.
func mostTurned(m *model.Model) (most int) {
	for _, r := range m.Ropes() {
		most = max(most, r.Dim)
	}
	return most
}

func addElems(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }
