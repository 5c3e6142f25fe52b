package exec

import (
	"math"
	"slices"
	"unsafe"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Sound tells whether the numbers behind LogitRows[i] of the last finished Run are usable: all
// logits finite, and a residual stream whose length is, since a norm makes zeros of a longer one.
// It costs one pass over the row: one part in a thousand of what the head computed it by.
func (e *Executor) Sound(i int) bool {
	x := unsafe.Slice(e.bufs.ranks[0].row(model.BufX, int(e.batch.LogitRows[i])), e.model.Dims.Hidden)
	return finiteFloats(e.Logits(i)) && finiteLength(x)
}

// finiteFloats adds a row up: a sum is finite only if everything in it is, and where the sum itself
// went over the edge a second look decides.
func finiteFloats(x []float32) bool {
	var a, b, c, d float32
	rest := x
	for ; len(rest) >= 8; rest = rest[8:] {
		v := (*[8]float32)(rest)
		a += v[0] + v[4]
		b += v[1] + v[5]
		c += v[2] + v[6]
		d += v[3] + v[7]
	}
	for _, v := range rest {
		a += v
	}
	if sum := float64(a + b + c + d); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
		return true
	}
	for _, v := range x {
		if v != v || v > math.MaxFloat32 || v < -math.MaxFloat32 {
			return false
		}
	}
	return true
}

// finiteLength tells whether the squares of a row add up to a float32, as norms need it.
func finiteLength(x []float32) bool {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum <= math.MaxFloat32
}

// Overflow is where numbers first leave the range of float32, or of the KV cache.
type Overflow struct {
	Op     *model.Op
	Cached bool // what the op stored in the KV cache, not what it computed
	Pos    int  // of the token
}

// FindOverflow runs the token at a position of a sequence once more, op by op, and looks for the
// first op whose results are not finite. Where that is attention because an earlier position's keys
// or values are not, it goes on with that position if the caller knows its token. A forward writes
// to the KV cache what it holds already, so nothing changes but the activations. nil: no op
// overflows.
func (e *Executor) FindOverflow(
	team Team, tables kvcache.Tables, pos int, token func(pos int) (id int32, known bool),
) (found *Overflow, err error) {
	tables, restore := e.besideState(tables)
	defer restore()
	for pos >= 0 {
		id, known := token(pos)
		if !known {
			break
		}
		b := kvcache.Batch{
			Tokens: []int32{id}, LogitRows: []int32{0}, Spans: []kvcache.Span{{Rows: 1, Pos: pos, Tables: tables}},
		}
		if found, err = e.firstOverflow(team, &b); err != nil || found == nil || found.Op.Kind != model.OpAttention {
			break
		}
		if pos = e.firstUnsound(found.Op.Layer, tables, pos); !e.remembers(tables, pos) {
			break
		}
	}
	return found, err
}

// besideState makes tables by which forwards go on from the state that there is, as often as they
// like, and leave no copies; restore puts that state back.
func (e *Executor) besideState(tables kvcache.Tables) (beside kvcache.Tables, restore func()) {
	if e.states == nil {
		return tables, func() {}
	}
	id := tables[e.states.store][1]
	beside = slices.Clone(tables)
	beside[e.states.store] = []kvcache.BlockID{id, id}
	block := unsafe.Slice((*byte)(unsafe.Pointer(e.states.of(0, id))), e.states.block)
	was := slices.Clone(block)
	return beside, func() { copy(block, was) }
}

// firstOverflow runs a batch of one row and stops behind every op that can be stopped behind.
func (e *Executor) firstOverflow(team Team, b *kvcache.Batch) (*Overflow, error) {
	e.bufs.Cut(nil)
	for from := 0; from < e.Ops(); {
		next, err := e.Run(team, b, from, everywhere{})
		if err != nil {
			return nil, err
		}
		for i := from; i < next; i++ {
			o := &Overflow{Op: &e.model.Ops[i], Pos: b.Spans[0].Pos}
			if !e.opSound(i) {
				return o, nil
			}
			stores := o.Op.Kind == model.OpRotate || o.Op.Kind == model.OpLatent
			if o.Cached = stores && !e.storedSound(o.Op.Layer, b.Spans[0].Tables, o.Pos); o.Cached {
				return o, nil
			}
		}
		from = next
	}
	return nil, nil
}

// opSound tells whether what op i wrote to the first row of its buffers is finite, in every rank.
func (e *Executor) opSound(i int) bool {
	op := &e.model.Ops[i]
	for _, buf := range e.written(op, e.steps[i].adds) {
		for r := range e.bufs.ranks {
			m, b := e.ranks[r].shard.model, &e.bufs.ranks[r]
			width := widthOf(m, &m.Ops[i], buf)
			if buf == model.BufLogits {
				b = &e.bufs.ranks[0] // the row of the whole
			}
			for row := range m.RowsOf(buf, 1) {
				x := unsafe.Slice(b.row(buf, row), width)
				if !finiteFloats(x) || (buf == model.BufX || buf == model.BufY) && !finiteLength(x) {
					return false
				}
			}
		}
	}
	return true
}

// widthOf is how many elements of a row of a buffer an op writes: layers may be of several widths.
func widthOf(m *model.Model, op *model.Op, buf model.Buf) int {
	if len(op.W) > 0 && buf != model.BufX {
		return m.Weights[op.W[slices.Index(op.Outs, buf)]].N
	}
	switch op.Kind {
	case model.OpAttention:
		return op.Heads.Q * op.Heads.Dim
	case model.OpOutGate:
		return op.N
	case model.OpDelta:
		return op.Delta.ValueHeads * op.Delta.ValueDim
	case model.OpConv:
		if buf != model.BufAlpha && buf != model.BufBeta {
			return op.Conv.N
		}
	}
	return m.Width(buf)
}

// written are the buffers that an op writes.
func (e *Executor) written(op *model.Op, adds bool) []model.Buf {
	switch op.Kind {
	case model.OpEmbed:
		return []model.Buf{model.BufX}
	case model.OpNorm:
		return []model.Buf{model.BufH}
	case model.OpMatMul, model.OpExperts:
		if adds {
			return []model.Buf{model.BufX}
		}
		return op.Outs
	case model.OpRotate:
		return []model.Buf{model.BufQ, model.BufK}
	case model.OpAttention, model.OpDelta, model.OpOutGate:
		return []model.Buf{model.BufAtt}
	case model.OpConv:
		if op.Delta != nil {
			return []model.Buf{model.BufMix, model.BufAlpha, model.BufBeta}
		}
		return op.Outs
	case model.OpAddNorm:
		if op.Norm == nil {
			return []model.Buf{model.BufX}
		}
		return []model.Buf{model.BufX, model.BufH}
	case model.OpInputs:
		return []model.Buf{model.BufInputs}
	case model.OpCombine, model.OpRowNorm, model.OpGate, model.OpHeads:
		return op.Outs
	case model.OpLatent:
		return []model.Buf{model.BufQ, model.BufLatentKV}
	}
	return nil // routes and copies
}

// remembers tells whether every store still has what a row at a position reads.
func (e *Executor) remembers(tables kvcache.Tables, pos int) bool {
	block := max(0, pos) / kvcache.BlockTokens
	for i, k := range e.layers.Kinds {
		if k == (kvcache.Recurrent{}) {
			continue // one position more or less makes no state finite
		}
		for b := range block + 1 {
			if tables[i][b] < 0 && (b == block || k.Reads(block, b)) {
				return false
			}
		}
	}
	return true
}

// firstUnsound is the first position before pos whose keys or values of a layer are there and not
// finite, -1 where there is none.
func (e *Executor) firstUnsound(layer int, tables kvcache.Tables, pos int) int {
	for p := range pos {
		if tables[e.layers.Of[layer]][p/kvcache.BlockTokens] >= 0 && !e.storedSound(layer, tables, p) {
			return p
		}
	}
	return -1
}

// storedSound tells whether a position's keys and values of a layer are finite, in every rank.
func (e *Executor) storedSound(layer int, tables kvcache.Tables, pos int) bool {
	table := tables[e.layers.Of[layer]]
	for r := range e.ranks {
		kv := e.ranks[r].kv
		for head := range kv.of[layer].kvHeads {
			k, v := kv.at(layer, table[pos/kvcache.BlockTokens], head)
			if !kv.of[layer].layout.Finite(k, v, pos%kvcache.BlockTokens) {
				return false
			}
		}
	}
	return true
}
