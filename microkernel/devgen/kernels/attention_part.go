package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// AttentionPart describes the first half of attention for few rows: a workgroup computes one block
// of one KV head, so that the blocks of a sequence are read at the same time. AttentionMerge
// computes the results of Attention from those of the blocks.
//
// Bindings: q (rows of float32), kv, tables, sequences, all as in Attention, and parts: for each
// sequence, block that its rows see, KV head and row of the workgroup the unscaled output, the sum
// and the maximum of the block. Push words: q_stride, group, kv_heads, head_words, block_words,
// blocks (of a sequence in parts), scale (float32), window (with Window), factor and cap (with
// Softcap), see Attention.
type AttentionPart struct {
	HeadDim int // a multiple of 16
	Rows    int // most rows of a sequence, a row being one query head of one token: 1 to 8
	Window  bool
	Softcap bool
}

const (
	maxPartRows = 8
	partSize    = 256 // invocations that read a block of many dimensions
	stageDims   = 128 // dimensions of keys or values in shared memory
	panelPad    = 8   // words after a panel there, so that invocations access distinct banks
	partUnroll  = 16
)

// PartWords returns the words of a row of a block in parts.
func PartWords(headDim int) int { return headDim + 2 }

// SupportsParts returns why AttentionPart cannot compute so many rows of a sequence, or nil.
func SupportsParts(headDim, rows int) error {
	if headDim < lanes || headDim > 512 || headDim%lanes != 0 || rows < 1 || rows > maxPartRows {
		return fmt.Errorf("device attention by parts: %d rows of %d dimensions; use 1 to %d rows and a multiple of %d "+
			"up to 512 dimensions", rows, headDim, maxPartRows, lanes)
	}
	return nil
}

// Grid returns the workgroups for sequences whose rows see up to the given number of blocks.
func (o AttentionPart) Grid(blocks, kvHeads, sequences int) [3]int {
	return [3]int{blocks, kvHeads, sequences}
}

// Kernel builds the kernel.
func (o AttentionPart) Kernel() (*devgen.Kernel, error) {
	if err := SupportsParts(o.HeadDim, o.Rows); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("attention_part_%d_x%d", o.HeadDim, o.Rows)
	if o.Window {
		name += "_window"
	}
	if o.Softcap {
		name += "_softcap"
	}
	size := max(o.Rows*attentionSize, min(partSize, 2*ceil(o.HeadDim, warp)*warp))
	p := attentionPart{Builder: devgen.NewBuilder(name, size), AttentionPart: o, size: size}
	p.declare()
	// A workgroup beyond the blocks of its sequence has nothing to do.
	b := p.Add(p.rows.from, p.Builtin(devgen.GroupX))
	p.For(b, p.Min(p.Add(b, p.U(1)), p.rows.to), p.U(1), p.block)
	p.FewGroups()
	return p.Build()
}

// partRows describes the rows of a sequence, as many as a workgroup has.
type partRows struct {
	*devgen.Builder
	row0, position, count, group, window devgen.Value // window: 0 without one
	table                                devgen.Value // first word of the block table
	from, to                             devgen.Value // blocks that the rows see
}

func newPartRows(b *devgen.Builder, sequences devgen.Buffer, group, window devgen.Value) partRows {
	at := b.Mul(b.Builtin(devgen.GroupZ), b.U(segmentWords))
	word := func(i int) devgen.Value { return b.Load(sequences, b.Add(at, b.U(i))) }
	p := partRows{Builder: b, row0: word(0), position: word(2), table: word(3), group: group, window: window}
	tokens := word(1)
	p.count = b.Mul(tokens, group)
	p.from = b.Shr(p.skips(b.Add(p.position, b.U(1))), b.U(6))
	p.to = b.Shr(b.Add(p.position, tokens, b.U(attentionSize-1)), b.U(6))
	return p
}

// skips returns the positions before the first one that a row sees, given the end of those.
func (p *partRows) skips(sees devgen.Value) devgen.Value {
	if p.window == 0 {
		return p.U(0)
	}
	return p.Sub(p.Max(sees, p.window), p.window)
}

// partRow is a row of the workgroup.
type partRow struct {
	token, head devgen.Value // of the sequence; of the KV head
	sees, skips devgen.Value // end of the positions that it sees, and those before the first one
}

// at returns row i, or the last one.
func (p *partRows) at(i devgen.Value) (r partRow) {
	i = p.Min(i, p.Sub(p.count, p.U(1)))
	r.token, r.head = p.Div(i, p.group), p.Rem(i, p.group)
	r.sees = p.Add(p.position, r.token, p.U(1))
	r.skips = p.skips(r.sees)
	return r
}

// attentionPart is an AttentionPart in construction. Invocations have three roles: a row and a
// position (scores, probabilities), one of sixteen lanes of a row (maximum and sum), and some
// dimensions of the output of some rows.
type attentionPart struct {
	*devgen.Builder
	AttentionPart
	size                        int
	q, kv, tables, out          devgen.Buffer
	qStride, kvHeads            devgen.Value
	headWords, blockWords       devgen.Value
	blocks, scale               devgen.Value
	factor, cap                 devgen.Value
	rows                        partRows
	local, kvHead               devgen.Value
	row, pos                    devgen.Value // of the first role
	hasRow                      devgen.Value
	stage                       devgen.Array
	queries, scores, lanesOfRow devgen.Array // [Rows][HeadDim], [Rows][64], [Rows][16]
	maxima                      devgen.Array // [Rows]
}

func (p *attentionPart) declare() {
	p.q, p.kv = p.Binding("q", devgen.Read), p.Binding("kv", devgen.Read)
	p.tables = p.Binding("tables", devgen.Read)
	sequences := p.Binding("sequences", devgen.Read)
	p.out = p.Binding("parts", devgen.Write)
	p.qStride = p.Push("q_stride", devgen.U32)
	group := p.Push("group", devgen.U32)
	p.kvHeads = p.Push("kv_heads", devgen.U32)
	p.headWords, p.blockWords = p.Push("head_words", devgen.U32), p.Push("block_words", devgen.U32)
	p.blocks, p.scale = p.Push("blocks", devgen.U32), p.Push("scale", devgen.F32)
	var window devgen.Value
	if p.Window {
		window = p.Push("window", devgen.U32)
	}
	if p.Softcap {
		p.factor, p.cap = p.Push("factor", devgen.F32), p.Push("cap", devgen.F32)
	}
	dims := min(p.HeadDim, stageDims)
	p.stage = p.Shared("stage", max(p.keyPanel(dims)*attentionSize/lanes, p.valuePanel()*dims/lanes))
	p.queries, p.scores = p.Shared("queries", p.Rows*p.HeadDim), p.Shared("scores", p.Rows*attentionSize)
	p.lanesOfRow, p.maxima = p.Shared("lanes", p.Rows*lanes), p.Shared("maxima", p.Rows)
	p.local, p.kvHead = p.Builtin(devgen.LocalIndex), p.Builtin(devgen.GroupY)
	p.row, p.pos = p.Shr(p.local, p.U(6)), p.And(p.local, p.U(attentionSize-1))
	p.hasRow = p.Less(p.row, p.U(p.Rows))
	p.rows = newPartRows(p.Builder, sequences, group, window)
}

// keyPanel and valuePanel return the words of a panel in the stage: of 16 positions and some
// dimensions, and of 16 dimensions.
func (p *attentionPart) keyPanel(dims int) int { return dims*lanes/2 + panelPad }
func (p *attentionPart) valuePanel() int       { return attentionSize*lanes/2 + panelPad }

// block computes one block.
func (p *attentionPart) block(b devgen.Value) {
	k := p.MulAdd(p.Load(p.tables, p.Add(p.rows.table, b)), p.blockWords, p.Mul(p.kvHead, p.headWords))
	v := p.Add(k, p.U(attentionSize*p.HeadDim/2))
	row := p.rows.at(p.row)
	start := p.Shl(b, p.U(6))
	seen := p.seen(b, row)

	queries, keys, values := p.loadQueries(), p.loadKeys(k, 0), p.loadValues(v, 0)
	p.store(p.queries, queries)
	score := p.Var(p.F(0))
	for first := 0; first < p.HeadDim; first += stageDims {
		if first > 0 {
			keys = p.loadKeys(k, first)
		}
		p.store(p.stage, keys)
		p.Barrier()
		p.If(p.hasRow, func() { p.addScores(first, score) })
		p.Barrier()
	}
	x := p.masked(p.Get(score), start, row, seen)
	p.If(p.hasRow, func() { p.StoreShared(p.scores, p.local, x) })
	p.store(p.stage, values)
	p.Barrier()
	p.storeMaxima(b)
	p.storeProbabilities(x, seen)
	p.storeSums(b)
	for first := 0; first < p.HeadDim; first += stageDims {
		if first > 0 {
			p.Barrier()
			p.store(p.stage, p.loadValues(v, first))
			p.Barrier()
		}
		p.storeValues(b, first)
	}
}

// seen returns the positions of a block before the end of what a row sees, 0 if it does not visit
// the block.
func (p *attentionPart) seen(b devgen.Value, r partRow) devgen.Value {
	start := p.Shl(b, p.U(6))
	visits := p.AndBool(p.Less(start, r.sees), p.Not(p.Less(b, p.Shr(r.skips, p.U(6)))))
	return p.Select(visits, p.Min(p.Sub(r.sees, start), p.U(attentionSize)), p.U(0))
}

// staged is a word on its way to shared memory.
type staged struct{ x, at, present devgen.Value }

// load loads the words [0, n) of a part of a buffer, this invocation's share: where returns the
// place of a word in the buffer and in shared memory.
func (p *attentionPart) load(buffer devgen.Buffer, n int,
	where func(i devgen.Value) (from, to devgen.Value)) (list []staged) {
	for i := 0; i < n; i += p.size {
		at := p.Add(p.local, p.U(i))
		present := p.Less(at, p.U(n))
		if n-i >= p.size {
			present = p.Equal(p.U(0), p.U(0)) // true
		}
		from, to := where(p.Min(at, p.U(n-1)))
		list = append(list, staged{p.Load(buffer, from), to, present})
	}
	return list
}

// loadKeys loads the keys of a block from dimension `first` on.
func (p *attentionPart) loadKeys(k devgen.Value, first int) []staged {
	panel := min(p.HeadDim-first, stageDims) * lanes / 2
	return p.load(p.kv, panel*attentionSize/lanes, func(i devgen.Value) (from, to devgen.Value) {
		which := p.Div(i, p.U(panel))
		from = p.Add(p.MulAdd(which, p.U(p.HeadDim*lanes/2), p.Rem(i, p.U(panel))), p.U(first*lanes/2))
		return p.Add(k, from), p.MulAdd(which, p.U(panelPad), i)
	})
}

// loadValues loads the values of a block from dimension `first` on.
func (p *attentionPart) loadValues(v devgen.Value, first int) []staged {
	const panel = attentionSize * lanes / 2
	dims := min(p.HeadDim-first, stageDims)
	return p.load(p.kv, dims/lanes*panel, func(i devgen.Value) (from, to devgen.Value) {
		return p.Add(v, p.U(first/lanes*panel), i), p.MulAdd(p.Div(i, p.U(panel)), p.U(panelPad), i)
	})
}

func (p *attentionPart) loadQueries() []staged {
	return p.load(p.q, p.Rows*p.HeadDim, func(i devgen.Value) (from, to devgen.Value) {
		row := p.rows.at(p.Div(i, p.U(p.HeadDim)))
		head := p.MulAdd(p.kvHead, p.rows.group, row.head)
		from = p.MulAdd(p.Add(p.rows.row0, row.token), p.qStride, p.Mul(head, p.U(p.HeadDim)))
		return p.Add(from, p.Rem(i, p.U(p.HeadDim))), i
	})
}

// store stores words to shared memory.
func (p *attentionPart) store(to devgen.Array, list []staged) {
	for _, s := range list {
		p.If(s.present, func() { p.StoreShared(to, s.at, s.x) })
	}
}

// addScores adds the products of the dimensions in the stage to the score of the invocation's row
// and position.
func (p *attentionPart) addScores(first int, score devgen.Var) {
	dims := min(p.HeadDim-first, stageDims)
	panel := p.Mul(p.Shr(p.pos, p.U(4)), p.U(p.keyPanel(dims)))
	key := p.Add(panel, p.And(p.Shr(p.pos, p.U(1)), p.U(lanes/2-1)))
	query := p.MulAdd(p.row, p.U(p.HeadDim), p.U(first))
	p.For(p.U(0), p.U(dims), p.U(partUnroll), func(d devgen.Value) {
		for j := range partUnroll {
			word := p.LoadShared(p.stage, p.Add(key, p.Mul(d, p.U(lanes/2)), p.U(j*lanes/2)))
			q := p.LoadSharedF(p.queries, p.Add(query, d, p.U(j)))
			p.Set(score, p.FMA(q, p.FloatFromHalf(halfOf(p.Builder, word, p.pos)), p.Get(score)))
		}
	})
}

// masked returns a score, -Inf where the row does not see the position.
func (p *attentionPart) masked(x, start devgen.Value, row partRow, seen devgen.Value) devgen.Value {
	if p.Softcap {
		x = softcapped(p.Builder, x, p.factor, p.cap)
	}
	sees := p.Less(p.pos, seen)
	if p.Window {
		sees = p.AndBool(sees, p.Not(p.Less(p.Add(start, p.pos), row.skips)))
	}
	return p.Select(sees, x, p.Float(p.U(arith.NegInfBits)))
}

// ofRows runs body in one invocation of each row, with the row's combination of its scores.
func (p *attentionPart) ofRows(init devgen.Value, combine func(x, y devgen.Value) devgen.Value,
	body func(x devgen.Value)) {
	reduceRows(p.Builder, p.scores, p.lanesOfRow, p.Rows, p.size, init, combine)
	p.If(p.Less(p.local, p.U(p.Rows)), func() {
		body(tree(p.Builder, p.lanesOfRow, p.Mul(p.local, p.U(lanes)), combine))
	})
	p.Barrier()
}

// place returns the first word of a row of the block in parts.
func (p *attentionPart) place(b, row devgen.Value) devgen.Value {
	at := p.MulAdd(p.Builtin(devgen.GroupZ), p.blocks, p.Sub(b, p.rows.from))
	at = p.MulAdd(at, p.kvHeads, p.kvHead)
	return p.Mul(p.MulAdd(at, p.U(p.Rows), row), p.U(PartWords(p.HeadDim)))
}

// storeMaxima computes the scaled maximum of each row.
func (p *attentionPart) storeMaxima(b devgen.Value) {
	p.ofRows(p.Float(p.U(arith.NegInfBits)), p.FMax, func(m devgen.Value) {
		seen := p.seen(b, p.rows.at(p.local))
		m = p.Select(p.Equal(seen, p.U(0)), m, p.FMax(m, p.F(arith.LowestScore)))
		m = p.FMul(m, p.rowScale())
		p.StoreShared(p.maxima, p.local, m)
		p.Store(p.out, p.Add(p.place(b, p.local), p.U(p.HeadDim+1)), m)
	})
}

// rowScale returns the factor of scores before the exponential.
func (p *attentionPart) rowScale() devgen.Value {
	if p.Softcap {
		return p.F(1)
	}
	return p.scale
}

// storeProbabilities replaces the scores by probabilities, zero where a row does not see a
// position.
func (p *attentionPart) storeProbabilities(x, seen devgen.Value) {
	p.If(p.hasRow, func() {
		e := p.Exp(p.FSub(p.FMul(x, p.rowScale()), p.LoadSharedF(p.maxima, p.row)))
		p.StoreShared(p.scores, p.local, p.Select(p.Less(p.pos, seen), e, p.F(0)))
	})
	p.Barrier()
}

func (p *attentionPart) storeSums(b devgen.Value) {
	p.ofRows(p.F(0), p.FAdd, func(sum devgen.Value) {
		p.Store(p.out, p.Add(p.place(b, p.local), p.U(p.HeadDim)), sum)
	})
}

// storeValues writes the sums of values of the dimensions in the stage, up to the last position
// that a row sees, because zero times infinity is not zero.
func (p *attentionPart) storeValues(b devgen.Value, first int) {
	dims := min(p.HeadDim-first, stageDims)
	for i := 0; i < p.Rows*dims; i += p.size {
		chain := p.Add(p.local, p.U(i))
		row, d := p.Div(chain, p.U(dims)), p.Rem(chain, p.U(dims))
		p.If(p.Less(chain, p.U(p.Rows*dims)), func() {
			seen := p.seen(b, p.rows.at(row))
			value := p.Add(p.Mul(p.Shr(d, p.U(4)), p.U(p.valuePanel())), p.And(p.Shr(d, p.U(1)), p.U(lanes/2-1)))
			score := p.Mul(row, p.U(attentionSize))
			sum := p.Var(p.F(0))
			p.For(p.U(0), seen, p.U(partUnroll), func(pos devgen.Value) {
				for j := range partUnroll {
					at := p.Add(pos, p.U(j))
					word := p.LoadShared(p.stage, p.Add(value, p.Mul(at, p.U(lanes/2))))
					x := p.FMA(p.LoadSharedF(p.scores, p.Add(score, at)),
						p.FloatFromHalf(halfOf(p.Builder, word, d)), p.Get(sum))
					p.Set(sum, p.Select(p.Less(at, seen), x, p.Get(sum)))
				}
			})
			e := p.FAdd(p.Get(sum), p.F(0)) // -0 becomes +0
			p.Store(p.out, p.Add(p.place(b, row), d, p.U(first)), e)
		})
	}
}
