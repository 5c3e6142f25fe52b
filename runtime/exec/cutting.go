package exec

import (
	"math"

	"sandwich/runtime/model"
)

// Gate is asked by one worker behind every step of a forward, before `next` begins, whether it
// halts there: by worker 0, or by another one while workers may be lost. It must not block, and the
// others wait for it.
type Gate interface{ Passed(next int) (halt bool) }

// ask asks the gate behind a step, once, before all meet: before step `at`, which is beyond the
// next one where the ranks go on up to a gather.
func (e *Executor) ask(next, at int) {
	if next <= e.asked {
		return
	}
	e.asked = next
	e.pacer.follow(next, len(e.ranks) == 1)
	if e.gate == nil || !e.gate.Passed(next) {
		return
	}
	if i, _ := e.bufs.locate(at); i < e.end {
		e.next = at
	}
	e.halt.Store(int64(at))
}

// askLast is ask by the last worker to arrive behind a step.
func (e *Executor) askLast(next int) { e.ask(next, next) }

// halted says, where all have met before a step, whether the forward ends there.
func (e *Executor) halted(next int) bool { return e.halt.Load() == int64(next) }

// meeting is who waits for whom behind a step.
type meeting uint8

const (
	meetAll     meeting = iota // all workers, and the forward may halt there
	meetOwn                    // those of a rank
	meetSumming                // all of them in the gather that follows, by the flags of its sum
)

// behind is the meeting behind a portion of op i, where another step follows or none does.
func (e *Executor) behind(i int, c portion, follows bool) meeting {
	switch s := &e.steps[i]; {
	case s.local && follows && !e.bufs.joint(i):
		return meetOwn
	case s.meet && s.mode != onGather && c.last():
		return meetSumming
	}
	return meetAll
}

// everywhere halts behind every step.
type everywhere struct{}

func (everywhere) Passed(int) bool { return true }

// portion is one of several steps in which an op runs, because the whole of it would keep somebody
// who waits for its end too long. No step changes what is computed: an element of a product is one
// chain over k whoever computes it, with what beside it (DESIGN rule 6).
type portion struct{ at, of int }

var whole = portion{0, 1}

func (c portion) last() bool { return c.at+1 == c.of }

// share is what the portion has of n units: which is the first, and how many there are.
func (c portion) share(n int) (first, units int) {
	first = n * c.at / c.of
	return first, n*(c.at+1)/c.of - first
}

// Cut cuts op i of the forward that begins next on these buffers into so many steps (0 and 1 leave
// it whole; nil: every op). What is halted keeps its cut with its activations. Only products,
// attention, experts and delta rules are cut. Inside a parallel subgraph ranks wait for each other
// behind every step of an op that has an entry above 0, so that the forward may halt there; 0 lets
// them go on.
func (b *Buffers) Cut(steps []uint16) { b.cuts = append(b.cuts[:0], steps...) }

// joint says whether ranks meet behind each step of op i on account of its cut.
func (b *Buffers) joint(i int) bool { return i < len(b.cuts) && b.cuts[i] > 0 }

// Meets says whether a forward can halt behind op i where nothing is cut: not inside a parallel
// subgraph.
func (e *Executor) Meets(i int) bool {
	return !e.steps[i].local && !(e.steps[i].meet && e.steps[i].mode.apart())
}

// Cuttable says whether an op can be cut.
func Cuttable(op *model.Op) bool {
	return op.Kind == model.OpMatMul || op.Kind == model.OpAttention || op.Kind == model.OpExperts ||
		op.Kind == model.OpDelta
}

// of is into how many steps op i is cut.
func (b *Buffers) of(i int) int {
	if i >= len(b.cuts) {
		return 1
	}
	return max(1, int(b.cuts[i]))
}

// locate is the op and the cut of it that step number index is.
func (b *Buffers) locate(index int) (i int, c portion) {
	for i = 0; index >= b.of(i); i++ {
		index -= b.of(i)
	}
	return i, portion{index, b.of(i)}
}

// after is the step behind another.
func (b *Buffers) after(i int, c portion) (int, portion) {
	if !c.last() {
		return i, portion{c.at + 1, c.of}
	}
	return i + 1, portion{0, b.of(i + 1)}
}

// Steps is what Run returns for the buffers in use when a forward is done: the number of ops, and
// of the cuts in them.
func (e *Executor) Steps() (n int) {
	if len(e.bufs.cuts) == 0 {
		return len(e.steps)
	}
	for i := range e.steps {
		n += e.bufs.of(i)
	}
	return n
}

// cutMatMul is matMul for the share that a cut has of the columns of each weight. Its patches are
// smaller than slices where that gives every worker some.
func (e *Executor) cutMatMul(g *group, op *model.Op, adds bool, c portion) {
	m, total := e.inputRows(op), 0
	for i := range op.Outs {
		total += g.rank.gemms[op.W[i]].of(m).cut(m, c, g.n).count()
	}
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := lo; t < hi; t++ {
			e.runPatch(g, op, adds, c, m, t)
		}
	}
}

// runPatch computes patch t of those that a cut has in all products of the op.
func (e *Executor) runPatch(g *group, op *model.Op, adds bool, c portion, m, t int) {
	for i := range op.Outs {
		grid := g.rank.gemms[op.W[i]].of(m).cut(m, c, g.n)
		if n := grid.count(); t >= n {
			t -= n
			continue
		}
		p := g.product(op, i, m)
		p.addTo(g, adds)
		e.compute(g, &p, grid.patch(t))
		return
	}
}

// patches are those of a cut: heights are those of slices, or less.
type patches struct {
	m, n0, n1   int
	rows, width int // rows is how many there are one below the other
}

// cut lays patches over the columns of a cut, several for each of so many workers.
func (g *Gemm) cut(m int, c portion, workers int) patches {
	nr := g.s.Kernel.NR
	p := patches{m: m, n1: g.layout.N}
	p.rows, _ = g.grid(m)
	p.n0 = g.layout.N * c.at / c.of / nr * nr
	if !c.last() {
		p.n1 = g.layout.N * (c.at + 1) / c.of / nr * nr
	}
	const each = 2 // for a worker
	p.width = min(g.bn, max(nr, roundUp((p.n1-p.n0)*p.rows/(each*workers), nr)))
	columns := (p.n1 - p.n0 + p.width - 1) / p.width
	p.rows = evenRows(columns, p.rows, workers, m, g.s.Kernel.MR)
	return p
}

// evenRows is into how many rows patches are laid where there are so many columns of them, least
// at least: as few as leave no worker idle for long, while the others compute the last ones.
func evenRows(columns, least, workers, m, mr int) int {
	const tiles, idle = 4, 0.1 // in the height of a patch at least; of the time at most
	if columns == 0 {
		return least
	}
	most := max(least, m/(tiles*mr), min(m, (workers+columns-1)/columns))
	best, wasted := least, math.Inf(1)
	for rows := least; rows <= most; rows++ {
		n := rows * columns
		turns := (n + workers - 1) / workers
		if w := float64(turns*workers)/float64(n) - 1; w < wasted {
			if best, wasted = rows, w; w <= idle {
				break
			}
		}
	}
	return best
}

func (p patches) count() int { return p.rows * ((p.n1 - p.n0 + p.width - 1) / p.width) }

func (p patches) patch(t int) patch {
	i, n := t%p.rows, p.n0+t/p.rows*p.width
	return patch{p.m * i / p.rows, p.m * (i + 1) / p.rows, n, min(n+p.width, p.n1)}
}
