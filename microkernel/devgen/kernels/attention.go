package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// Attention describes float32 attention over float16 KV blocks: softmax of the scaled scores of
// the positions that a row sees, times the values.
//
// Bindings: q, out (rows of float32; the Group query heads of a KV head follow each other), kv
// (block 0 of KV head 0 of the layer), tables (numbers of blocks), sequences. Push words: q_stride,
// out_stride, group (query heads of a KV head), head_words (K and V block of a head), block_words
// (of all heads), scale (float32), window (with Window: positions that a row sees), factor and cap
// (with Softcap: float32; factor is 2*scale/cap).
//
// A sequence has four words: its first row of the batch, its rows, the position of the first row,
// and the first word of its block table.
type Attention struct {
	HeadDim int
	Rows    int // rows of a workgroup, a row being one query head of one token: 1 to 16
	Window  bool
	Softcap bool
	Sinks   bool
}

const (
	attentionSize = arith.BlockPositions // invocations: one for each position of a block
	// Dimensions and positions of an iteration, so that loads overlap; more make large code.
	unrollDims, unrollPositions = 8, 4
)

// Grid returns the workgroups for sequences of up to the given number of rows of the batch.
func (o Attention) Grid(rows, group, kvHeads, sequences int) [3]int {
	return [3]int{ceil(rows*group, o.Rows), kvHeads, sequences}
}

// Kernel builds the kernel.
func (o Attention) Kernel() (*devgen.Kernel, error) {
	if o.HeadDim < 1 || o.HeadDim > 512 || o.Rows < 1 || o.Rows > 16 {
		return nil, fmt.Errorf("device attention: %d rows of %d dimensions; use 1 to 16 rows and up to 512 dimensions",
			o.Rows, o.HeadDim)
	}
	name := fmt.Sprintf("attention_%d_x%d", o.HeadDim, o.Rows)
	if o.Window {
		name += "_window"
	}
	if o.Softcap {
		name += "_softcap"
	}
	if o.Sinks {
		name += "_sinks"
	}
	a := attention{Builder: devgen.NewBuilder(name, attentionSize), Attention: o}
	a.declare()
	a.locate()
	a.For(a.from, a.to, a.U(1), a.block)
	a.finish()
	return a.Build()
}

// attention is an Attention in construction. Invocations have three roles: a position of a block
// (scores, probabilities), one of sixteen lanes of a row (maximum and sum), and some dimensions of
// the output. Running maxima and sums belong to invocation r of row r.
type attention struct {
	*devgen.Builder
	Attention
	q, out, kv, tables, sequences devgen.Buffer
	sinks                         devgen.Buffer // with Sinks
	qStride, outStride, group     devgen.Value
	headWords, blockWords         devgen.Value
	scale, window, factor, cap    devgen.Value

	queries, scores, partial devgen.Array // [Rows][HeadDim], [Rows][64], [Rows][16]
	stats                    devgen.Array // [Rows] maxima of the block, later factors
	old, added, unseen       devgen.Array // [Rows] factors of the merge, and whether the block is skipped

	local    devgen.Value
	table    devgen.Value   // first word of the block table
	head     devgen.Value   // first word of the KV head in a block
	row      []devgen.Value // of the batch
	heads    []devgen.Value
	present  []devgen.Value
	sees     []devgen.Value // end of the positions that a row sees
	skips    []devgen.Value // positions before the first one it sees
	from, to devgen.Value   // blocks of the workgroup
	m, s     devgen.Var     // of invocation r
	acc      [][]devgen.Var // output of a row and a dimension of this invocation
}

func (a *attention) declare() {
	a.q, a.out = a.Binding("q", devgen.Read), a.Binding("out", devgen.Write)
	a.kv, a.tables = a.Binding("kv", devgen.Read), a.Binding("tables", devgen.Read)
	a.sequences = a.Binding("sequences", devgen.Read)
	if a.Sinks {
		a.sinks = a.Binding("sinks", devgen.Read)
	}
	a.qStride, a.outStride = a.Push("q_stride", devgen.U32), a.Push("out_stride", devgen.U32)
	a.group = a.Push("group", devgen.U32)
	a.headWords, a.blockWords = a.Push("head_words", devgen.U32), a.Push("block_words", devgen.U32)
	a.scale = a.Push("scale", devgen.F32)
	if a.Window {
		a.window = a.Push("window", devgen.U32)
	}
	if a.Softcap {
		a.factor, a.cap = a.Push("factor", devgen.F32), a.Push("cap", devgen.F32)
	}
	a.queries = a.Shared("queries", a.Rows*a.HeadDim)
	a.scores = a.Shared("scores", a.Rows*attentionSize)
	a.partial = a.Shared("partial", a.Rows*lanes)
	a.stats = a.Shared("stats", a.Rows)
	a.old, a.added, a.unseen = a.Shared("old", a.Rows), a.Shared("added", a.Rows), a.Shared("unseen", a.Rows)
	a.local = a.Builtin(devgen.LocalIndex)
}

// locate computes the rows of the workgroup and what they see, and copies their queries.
func (a *attention) locate() {
	sequence := a.Mul(a.Builtin(devgen.GroupZ), a.U(segmentWords))
	word := func(i int) devgen.Value { return a.Load(a.sequences, a.Add(sequence, a.U(i))) }
	row0, tokens, position := word(0), word(1), word(2)
	a.table = word(3)
	kvHead := a.Builtin(devgen.GroupY)
	a.head = a.Mul(kvHead, a.headWords)
	count := a.Mul(tokens, a.group)
	first := a.Mul(a.Builtin(devgen.GroupX), a.U(a.Rows))
	for r := range a.Rows {
		i := a.Add(first, a.U(r))
		present := a.Less(i, count)
		i = a.Min(i, a.Sub(count, a.U(1)))
		token, head := a.Div(i, a.group), a.Rem(i, a.group)
		sees := a.Add(position, token, a.U(1))
		skips := a.U(0)
		if a.Window {
			skips = a.Sub(a.Max(sees, a.window), a.window)
		}
		a.row, a.present = append(a.row, a.Add(row0, token)), append(a.present, present)
		a.heads = append(a.heads, a.MulAdd(kvHead, a.group, head))
		a.sees, a.skips = append(a.sees, sees), append(a.skips, skips)
	}
	a.from = a.Shr(a.skips[0], a.U(6))
	a.to = a.Shr(a.Add(a.sees[a.Rows-1], a.U(attentionSize-1)), a.U(6))
	// A workgroup beyond the rows of its sequence has nothing to do.
	a.to = a.Select(a.present[0], a.to, a.from)
	a.copyQueries()
	a.m, a.s = a.Var(a.Float(a.U(arith.NegInfBits))), a.Var(a.F(0))
	if a.Sinks { // the running maximum and sum begin with the sink
		a.ofRow(a.heads, func(head devgen.Value) {
			a.Set(a.m, a.LoadF(a.sinks, head))
			a.Set(a.s, a.F(1))
		})
	}
	for range a.Rows {
		out := make([]devgen.Var, ceil(a.HeadDim, attentionSize))
		for j := range out {
			out[j] = a.Var(a.F(0))
		}
		a.acc = append(a.acc, out)
	}
	a.Barrier()
}

// copyQueries copies the queries of the rows to shared memory.
func (a *attention) copyQueries() {
	type element struct{ at, d, x devgen.Value }
	var list []element
	for r := range a.Rows {
		from := a.MulAdd(a.row[r], a.qStride, a.Mul(a.heads[r], a.U(a.HeadDim)))
		for i := 0; i < a.HeadDim; i += attentionSize {
			d := a.Add(a.local, a.U(i))
			x := a.Load(a.q, a.Add(from, a.Min(d, a.U(a.HeadDim-1))))
			list = append(list, element{a.Add(d, a.U(r*a.HeadDim)), d, x})
		}
	}
	for _, e := range list {
		a.If(a.Less(e.d, a.U(a.HeadDim)), func() { a.StoreShared(a.queries, e.at, e.x) })
	}
}

// block merges one block into the outputs of the rows.
func (a *attention) block(b devgen.Value) {
	number := a.Load(a.tables, a.Add(a.table, b))
	k := a.Add(a.Mul(number, a.blockWords), a.head)
	v := a.Add(k, a.U(attentionSize*a.HeadDim/2))
	start := a.Shl(b, a.U(6))
	seen := make([]devgen.Value, a.Rows) // positions of the block before the end of what a row sees
	for r := range seen {
		// A row whose first block is later does not visit this one.
		visits := a.AndBool(a.Less(start, a.sees[r]), a.Not(a.Less(b, a.Shr(a.skips[r], a.U(6)))))
		n := a.Min(a.Sub(a.sees[r], start), a.U(attentionSize))
		seen[r] = a.Select(visits, n, a.U(0))
	}
	scores := a.computeScores(k, start, seen)
	a.Barrier()
	a.maxima(seen)
	a.probabilities(scores, seen)
	a.sums(seen)
	sums := a.values(v, seen)
	a.Barrier() // factors
	for r := range a.acc {
		unseen := a.Equal(a.LoadShared(a.unseen, a.U(r)), a.U(1))
		old, added := a.LoadSharedF(a.old, a.U(r)), a.LoadSharedF(a.added, a.U(r))
		for j, out := range a.acc[r] {
			x := a.Get(out)
			e := a.FAdd(a.Get(sums[r][j]), a.F(0)) // -0 becomes +0
			a.Set(out, a.Select(unseen, x, a.FMA(x, old, a.FMul(e, added))))
		}
	}
	a.Barrier()
}

// computeScores returns the scores of this invocation's position and writes them to shared memory,
// -Inf where a row does not see the position.
func (a *attention) computeScores(k, start devgen.Value, seen []devgen.Value) []devgen.Value {
	sums := make([]devgen.Var, a.Rows)
	for r := range sums {
		sums[r] = a.Var(a.F(0))
	}
	panel := a.Mul(a.Shr(a.local, a.U(4)), a.U(a.HeadDim*lanes/2))
	first := a.Add(k, panel, a.And(a.Shr(a.local, a.U(1)), a.U(lanes/2-1)))
	dimension := func(d devgen.Value) {
		word := a.Load(a.kv, a.Add(first, a.Mul(d, a.U(lanes/2))))
		key := a.FloatFromHalf(halfOf(a.Builder, word, a.local))
		for r, sum := range sums {
			q := a.LoadSharedF(a.queries, a.Add(a.U(r*a.HeadDim), d))
			a.Set(sum, a.FMA(q, key, a.Get(sum)))
		}
	}
	whole := a.HeadDim / unrollDims * unrollDims
	a.For(a.U(0), a.U(whole), a.U(unrollDims), func(d devgen.Value) {
		for j := range unrollDims {
			dimension(a.Add(d, a.U(j)))
		}
	})
	for d := whole; d < a.HeadDim; d++ {
		dimension(a.U(d))
	}
	inf := a.Float(a.U(arith.NegInfBits))
	scores := make([]devgen.Value, a.Rows)
	for r, sum := range sums {
		x := a.Get(sum)
		if a.Softcap {
			x = softcapped(a.Builder, x, a.factor, a.cap)
		}
		sees := a.Less(a.local, seen[r])
		if a.Window {
			sees = a.AndBool(sees, a.Not(a.Less(a.Add(start, a.local), a.skips[r])))
		}
		scores[r] = a.Select(sees, x, inf)
		a.StoreShared(a.scores, a.Add(a.U(r*attentionSize), a.local), scores[r])
	}
	return scores
}

// softcapped returns cap*tanh(x*factor/2).
func softcapped(b *devgen.Builder, x, factor, cap devgen.Value) devgen.Value {
	e := b.FAdd(b.Exp(b.FMul(x, factor)), b.F(1))
	return b.FSub(cap, b.FDiv(b.FAdd(cap, cap), e))
}

// reduce combines the scores of each row to sixteen partial results.
func (a *attention) reduce(init devgen.Value, combine func(x, y devgen.Value) devgen.Value) {
	reduceRows(a.Builder, a.scores, a.partial, a.Rows, attentionSize, init, combine)
}

// ofRow runs body in invocation r of each row, with the row's own value of a list.
func (a *attention) ofRow(list []devgen.Value, body func(x devgen.Value)) {
	a.If(a.Less(a.local, a.U(a.Rows)), func() {
		x := list[0]
		for r := 1; r < len(list); r++ {
			x = a.Select(a.Equal(a.local, a.U(r)), list[r], x)
		}
		body(x)
	})
}

// maxima computes the scaled maximum of each row.
func (a *attention) maxima(seen []devgen.Value) {
	a.reduce(a.Float(a.U(arith.NegInfBits)), a.FMax)
	a.ofRow(seen, func(n devgen.Value) {
		m := tree(a.Builder, a.partial, a.Mul(a.local, a.U(lanes)), a.FMax)
		m = a.Select(a.Equal(n, a.U(0)), m, a.FMax(m, a.F(arith.LowestScore)))
		a.StoreShared(a.stats, a.local, a.FMul(m, a.rowScale()))
	})
	a.Barrier()
}

// rowScale returns the factor of scores before the exponential.
func (a *attention) rowScale() devgen.Value {
	if a.Softcap {
		return a.F(1)
	}
	return a.scale
}

// probabilities replaces the scores by probabilities, zero where a row does not see a position.
func (a *attention) probabilities(scores, seen []devgen.Value) {
	for r, x := range scores {
		p := a.Exp(a.FSub(a.FMul(x, a.rowScale()), a.LoadSharedF(a.stats, a.U(r))))
		p = a.Select(a.Less(a.local, seen[r]), p, a.F(0))
		a.StoreShared(a.scores, a.Add(a.U(r*attentionSize), a.local), p)
	}
	a.Barrier()
}

// sums merges maxima and sums of the block into the running ones and writes the factors of the
// outputs.
func (a *attention) sums(seen []devgen.Value) {
	a.reduce(a.F(0), a.FAdd)
	inf := a.U(arith.NegInfBits)
	a.ofRow(seen, func(devgen.Value) {
		mb, m, s := a.LoadSharedF(a.stats, a.local), a.Get(a.m), a.Get(a.s)
		sb := tree(a.Builder, a.partial, a.Mul(a.local, a.U(lanes)), a.FAdd)
		unseen, first := a.Equal(a.Bits(mb), inf), a.Equal(a.Bits(m), inf)
		top := a.FMax(m, mb)
		// The first block is merged into zeros: 0*0 + e*1.
		old := a.Select(first, a.F(0), a.Exp(a.FSub(m, top)))
		added := a.Select(first, a.F(1), a.Exp(a.FSub(mb, top)))
		sum := a.Select(first, sb, a.FMA(s, old, a.FMul(sb, added)))
		a.Set(a.s, a.Select(unseen, s, sum))
		a.Set(a.m, a.Select(unseen, m, a.Select(first, mb, top)))
		a.StoreShared(a.old, a.local, old)
		a.StoreShared(a.added, a.local, added)
		a.StoreShared(a.unseen, a.local, a.Select(unseen, a.U(1), a.U(0)))
	})
}

// values returns the sums of values of this invocation's dimensions, up to the last position that a
// row sees, because zero times infinity is not zero.
func (a *attention) values(v devgen.Value, seen []devgen.Value) [][]devgen.Var {
	sums := make([][]devgen.Var, a.Rows)
	most := a.U(0)
	for r := range sums {
		for range a.acc[r] {
			sums[r] = append(sums[r], a.Var(a.F(0)))
		}
		most = a.Max(most, seen[r])
	}
	first := make([]devgen.Value, len(a.acc[0]))
	dims := make([]devgen.Value, len(first))
	for j := range first {
		d := a.Min(a.Add(a.local, a.U(j*attentionSize)), a.U(a.HeadDim-1))
		panel := a.Mul(a.Shr(d, a.U(4)), a.U(attentionSize*lanes/2))
		first[j], dims[j] = a.Add(v, panel, a.And(a.Shr(d, a.U(1)), a.U(lanes/2-1))), d
	}
	position := func(pos devgen.Value) {
		at := a.Mul(pos, a.U(lanes/2))
		x := make([]devgen.Value, len(first))
		for j := range x {
			x[j] = a.FloatFromHalf(halfOf(a.Builder, a.Load(a.kv, a.Add(first[j], at)), dims[j]))
		}
		for r := range sums {
			p := a.LoadSharedF(a.scores, a.Add(a.U(r*attentionSize), pos))
			sees := a.Less(pos, seen[r])
			for j, sum := range sums[r] {
				old := a.Get(sum)
				a.Set(sum, a.Select(sees, a.FMA(p, x[j], old), old))
			}
		}
	}
	a.For(a.U(0), most, a.U(unrollPositions), func(pos devgen.Value) { // a block has a multiple of these
		for j := range unrollPositions {
			position(a.Add(pos, a.U(j)))
		}
	})
	return sums
}

// finish divides the outputs by their sums and stores them.
func (a *attention) finish() {
	a.If(a.Less(a.local, a.U(a.Rows)), func() { a.StoreShared(a.stats, a.local, a.FDiv(a.F(1), a.Get(a.s))) })
	a.Barrier()
	for r := range a.acc {
		inv := a.LoadSharedF(a.stats, a.U(r))
		at := a.Add(a.Mul(a.row[r], a.outStride), a.Mul(a.heads[r], a.U(a.HeadDim)))
		for j, out := range a.acc[r] {
			d := a.Add(a.local, a.U(j*attentionSize))
			a.If(a.AndBool(a.present[r], a.Less(d, a.U(a.HeadDim))), func() {
				a.Store(a.out, a.Add(at, d), a.FMul(a.Get(out), inv))
			})
		}
	}
}
