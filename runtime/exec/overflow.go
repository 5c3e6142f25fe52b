package exec

import (
	"math"
	"slices"
	"unsafe"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Sound reports whether the results of LogitRows[i] of the last finished Run are usable: all logits
// are finite, and so is the length of the residual stream, since a norm makes zeros of a longer
// one. It reads the row once, which takes about a thousandth of the time of the head.
func (e *Executor) Sound(i int) bool {
	x := unsafe.Slice(e.bufs.ranks[0].Row(model.BufX, int(e.forward.batch.LogitRows[i])), e.model.Dims.Hidden)
	return finiteFloats(e.Logits(i)) && finiteLength(x)
}

// finiteFloats reports whether all elements are finite. A finite sum proves it; if the sum
// overflows, each element is checked.
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

// finiteLength reports whether the sum of the squares of a row is a finite float32, as norms need
// it.
func finiteLength(x []float32) bool {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum <= math.MaxFloat32
}

// Overflow describes where numbers first leave the range of float32, or of the KV cache.
type Overflow struct {
	Op     *model.Op
	Cached bool // in what the op stored in the KV cache, not in what it computed
	Pos    int  // of the token
}

// FindOverflow runs the token at a position of a sequence again, op by op, and returns the first op
// whose results are not finite, or nil. If that is attention because the keys or values of an
// earlier position are not finite, it continues with that position if the caller knows its token.
// It writes to the KV cache what is there already, so only the activations change.
func (e *Executor) FindOverflow(
	team Team, tables kvcache.Tables, pos int, token func(pos int) (id int32, known bool),
) (found *Overflow, err error) {
	tables, restore := e.keepState(tables)
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
		if pos = e.firstUnsound(found.Op.Layer, tables, pos); !e.keeps(tables, pos) {
			break
		}
	}
	return found, err
}

// keepState returns tables with which forwards continue from the current state any number of times
// without checkpoints, and a function that restores that state.
func (e *Executor) keepState(tables kvcache.Tables) (own kvcache.Tables, restore func()) {
	if e.states == nil {
		return tables, func() {}
	}
	store := e.states.Store()
	id := tables[store][1]
	own = slices.Clone(tables)
	own[store] = []kvcache.BlockID{id, id, kvcache.NoState}
	block := e.states.Block(id)
	was := slices.Clone(block)
	return own, func() { copy(block, was) }
}

// firstOverflow runs a batch of one row and halts after every op at which a forward can halt.
func (e *Executor) firstOverflow(team Team, b *kvcache.Batch) (*Overflow, error) {
	e.bufs.Cut(nil)
	for from := 0; from < e.Ops(); {
		next, err := e.Run(team, b, from, everyStep{})
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

// opSound reports whether what op i wrote to the first row of its buffers is finite in every rank.
func (e *Executor) opSound(i int) bool {
	op := &e.model.Ops[i]
	for _, buf := range written(op, e.ops[i].AddsToX) {
		for r := range e.bufs.ranks {
			m, b := e.ranks[r].shard.Model, &e.bufs.ranks[r]
			width := widthOf(m, &m.Ops[i], buf)
			if buf == model.BufLogits {
				b = &e.bufs.ranks[0] // the row of the whole
			}
			for row := range m.RowsOf(buf, 1) {
				x := unsafe.Slice(b.Row(buf, row), width)
				if !finiteFloats(x) || (buf == model.BufX || buf == model.BufY) && !finiteLength(x) {
					return false
				}
			}
		}
	}
	return true
}

// widthOf returns how many elements of a row of a buffer an op writes. Layers may have several
// widths.
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

// written returns the buffers that an op writes.
func written(op *model.Op, adds bool) []model.Buf {
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
	case model.OpCombine, model.OpRowNorm, model.OpGate, model.OpHeads, model.OpPool:
		return op.Outs
	case model.OpLatent:
		return []model.Buf{model.BufQ, model.BufLatentKV}
	}
	return nil // routes and copies
}

// keeps reports whether every store still has what a row at a position reads.
func (e *Executor) keeps(tables kvcache.Tables, pos int) bool {
	block := max(0, pos) / kvcache.BlockTokens
	for i, k := range e.layers.Kinds {
		if k == (kvcache.Recurrent{}) {
			continue // a state that is not finite stays so
		}
		for b := range block + 1 {
			if tables[i][b] < 0 && (b == block || k.Reads(block, b)) {
				return false
			}
		}
	}
	return true
}

// firstUnsound returns the first position before pos whose keys or values of a layer are cached and
// not finite, or -1.
func (e *Executor) firstUnsound(layer int, tables kvcache.Tables, pos int) int {
	for p := range pos {
		if tables[e.layers.Of[layer]][p/kvcache.BlockTokens] >= 0 && !e.storedSound(layer, tables, p) {
			return p
		}
	}
	return -1
}

// storedSound reports whether the keys and values of a position of a layer are finite in every
// rank.
func (e *Executor) storedSound(layer int, tables kvcache.Tables, pos int) bool {
	block := tables[e.layers.Of[layer]][pos/kvcache.BlockTokens]
	return e.kv.Finite(layer, block, pos%kvcache.BlockTokens)
}
