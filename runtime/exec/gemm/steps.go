package gemm

import (
	"math"

	"sandwich/internal/num"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// MatMulStep is MatMul for one of several steps: a range of the columns of each weight. Its chunks
// are smaller than slices if that gives every worker some.
func (r *Products) MatMulStep(g *tp.Group, op *model.Op, m int, adds bool, step tp.Step) {
	total := 0
	for i := range op.Outs {
		total += r.grid(op.W[i], m).stepGrid(m, step, g.N).chunks()
	}
	for lo, hi, ok := g.Next(total, 1); ok; lo, hi, ok = g.Next(total, 1) {
		for t := lo; t < hi; t++ {
			r.stepChunk(g, op, adds, step, m, t)
		}
	}
}

// stepChunk computes chunk t of all products of the op in a step.
func (r *Products) stepChunk(g *tp.Group, op *model.Op, adds bool, step tp.Step, m, t int) {
	for i := range op.Outs {
		grid := r.grid(op.W[i], m).stepGrid(m, step, g.N)
		if n := grid.chunks(); t >= n {
			t -= n
			continue
		}
		p := r.product(g, op, i, m)
		p.addTo(g, adds)
		p.run(g, grid.chunk(t))
		return
	}
}

// stepGrid divides the columns [n0, n1) of a product of m rows into chunks.
type stepGrid struct {
	m, n0, n1   int
	rows, width int // chunks along m, and columns of a chunk
}

// stepGrid returns the chunks of a step, several for each of so many workers.
func (g *Gemm) stepGrid(m int, step tp.Step, workers int) stepGrid {
	nr := g.s.Kernel.NR
	p := stepGrid{m: m, n1: g.layout.N}
	p.rows, _ = g.grid(m)
	p.n0 = g.layout.N * step.Index / step.Count / nr * nr
	if !step.Last() {
		p.n1 = g.layout.N * (step.Index + 1) / step.Count / nr * nr
	}
	const each = 2 // chunks of a worker
	p.width = min(g.bn, max(nr, num.RoundUp((p.n1-p.n0)*p.rows/(each*workers), nr)))
	columns := (p.n1 - p.n0 + p.width - 1) / p.width
	p.rows = evenRows(columns, p.rows, workers, m, g.s.Kernel.MR)
	return p
}

// evenRows returns the number of chunks along m, at least `minimum`, for so many along n: the
// smallest number that leaves no worker idle for long at the end.
func evenRows(columns, minimum, workers, m, mr int) int {
	const tiles, idle = 4, 0.1 // register tiles in the height of a chunk at least; part of the time at most
	if columns == 0 {
		return minimum
	}
	limit := max(minimum, m/(tiles*mr), min(m, (workers+columns-1)/columns))
	best, wasted := minimum, math.Inf(1)
	for rows := minimum; rows <= limit; rows++ {
		n := rows * columns
		rounds := (n + workers - 1) / workers
		if w := float64(rounds*workers)/float64(n) - 1; w < wasted {
			if best, wasted = rows, w; w <= idle {
				break
			}
		}
	}
	return best
}

func (p stepGrid) chunks() int { return p.rows * ((p.n1 - p.n0 + p.width - 1) / p.width) }

func (p stepGrid) chunk(t int) slice {
	i, n := t%p.rows, p.n0+t/p.rows*p.width
	return slice{p.m * i / p.rows, p.m * (i + 1) / p.rows, n, min(n+p.width, p.n1)}
}
