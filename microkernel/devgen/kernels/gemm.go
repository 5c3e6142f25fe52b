package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/weights"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Epilogue describes what a matrix product does with its result.
type Epilogue uint8

// The epilogues.
const (
	Store Epilogue = iota // C = A*W (+ bias)
	Add                   // C += A*W (+ bias)
	Gated                 // C = unit(A*gate, A*up), a gated linear unit of two weights
)

// GEMM describes a product of rows of activations with packed weights, C[M, N] = A[M, K] * W[N,
// K]^T, by the chain of its compute path.
//
// Bindings: a (rows of float32, or quantized activations for integer paths), w (panels), up (Gated:
// panels of the same shape), bias (with Bias: N float32), c. Push words: m, n, k, a_stride,
// w_stride (of panels), c_stride.
type GEMM struct {
	Weight   qtype.Type
	Path     kernel.Compute
	Epilogue Epilogue
	Unit     GLU // of Gated
	Bias     bool
	Rows     int // rows of C per invocation, 1 to 16
	Panels   int // columns of C per invocation, each of another panel, 1 to 4; 0: 1
}

const (
	gemmPanels = 4 // panels that the invocations of a workgroup read at a time
	gemmSize   = gemmPanels * qtype.PanelWidth
)

// Grid returns the workgroups of a product of m rows and n columns.
func (g GEMM) Grid(m, n int) [3]int {
	return [3]int{ceil(n, gemmSize*g.panels()), ceil(m, g.Rows), 1}
}

func (g GEMM) panels() int { return max(1, g.Panels) }

// Kernel builds the kernel.
func (g GEMM) Kernel() (*devgen.Kernel, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	if g.Rows < 1 || g.Rows > 16 || g.panels() > 4 {
		return nil, fmt.Errorf("device product: %d rows and %d panels per invocation; use 1 to 16 and 1 to 4", g.Rows,
			g.Panels)
	}
	k := newProduct(g, "gemm", gemmSize)
	k.build()
	return k.Build()
}

// check returns why there is no such product.
func (g GEMM) check() error {
	if err := weights.Supports(g.Weight, g.Path); err != nil {
		return fmt.Errorf("device product: %w", err)
	}
	if g.Bias && g.Epilogue == Gated {
		return fmt.Errorf("device product: a gated product has no bias")
	}
	return nil
}

// name returns a name that determines the code of the kernel.
func (g GEMM) name(kind string) string {
	epilogue := [...]string{Store: "store", Add: "add", Gated: "gated"}[g.Epilogue]
	s := fmt.Sprintf("%s%dx%d_%s_%s_%s", kind, g.Rows, g.panels(), g.Weight, g.Path, epilogue)
	if g.Epilogue == Gated {
		s += "_" + g.Unit.String()
	}
	if g.Bias {
		s += "_bias"
	}
	return identifier(s)
}

// identifier replaces the characters of names of types and paths that identifiers must not have.
func identifier(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c == '-' || c == '.' || c == ' ' {
			out[i] = '_'
		}
	}
	return string(out)
}

// product is a matrix product in construction.
type product struct {
	*devgen.Builder
	g                         GEMM
	a, bias, c                devgen.Buffer
	w                         []devgen.Buffer
	m, n, k                   devgen.Value
	aStride, wStride, cStride devgen.Value
}

func newProduct(g GEMM, kind string, size int) *product {
	p := &product{Builder: devgen.NewBuilder(g.name(kind), size), g: g}
	p.a = p.Binding("a", devgen.Read)
	p.w = append(p.w, p.Binding("w", devgen.Read))
	access := devgen.Write
	switch g.Epilogue {
	case Gated:
		p.w = append(p.w, p.Binding("up", devgen.Read))
	case Add:
		access = devgen.ReadWrite
	}
	if g.Bias {
		p.bias = p.Binding("bias", devgen.Read)
	}
	p.c = p.Binding("c", access)
	p.m, p.n, p.k = p.Push("m", devgen.U32), p.Push("n", devgen.U32), p.Push("k", devgen.U32)
	p.aStride, p.wStride = p.Push("a_stride", devgen.U32), p.Push("w_stride", devgen.U32)
	p.cStride = p.Push("c_stride", devgen.U32)
	return p
}

// vars declares n variables.
func (p *product) vars(n int, init devgen.Value) []devgen.Var {
	list := make([]devgen.Var, n)
	for i := range list {
		list[i] = p.Var(init)
	}
	return list
}

// finish writes one element of C, given the sums of the weights.
func (p *product) finish(row, column devgen.Value, sums []devgen.Value) {
	at := p.MulAdd(row, p.cStride, column)
	x := sums[0]
	if p.g.Epilogue == Gated {
		x = p.g.Unit.emit(p.Builder, sums[0], sums[1])
	}
	if p.g.Bias {
		x = p.FAdd(x, p.LoadF(p.bias, column))
	}
	if p.g.Epilogue == Add {
		x = p.FAdd(p.LoadF(p.c, at), x)
	}
	p.Store(p.c, at, x)
}

// tile is the part of one invocation: some columns of some rows.
type tile struct {
	*product
	columns []devgen.Value
	rows    []devgen.Value // words at which the rows of A begin
	panels  []panel        // of each column, those of its weights together
	table   devgen.Array   // of their type, see newCodebook
	acc     [][]devgen.Var // by panel and row
}

func (p *product) build() {
	local := p.Builtin(devgen.LocalIndex)
	panels := p.Shr(p.Add(p.n, p.U(qtype.PanelWidth-1)), p.U(4))
	each := p.g.panels()
	first := p.MulAdd(p.Builtin(devgen.GroupX), p.U(gemmPanels*each), p.Shr(local, p.U(4)))
	t := tile{product: p, table: newCodebook(p.Builder, p.g.Weight.Desc(), gemmSize)}
	for i := range each {
		t.addColumn(p.Add(first, p.U(gemmPanels*i)), panels, p.And(local, p.U(qtype.PanelWidth-1)))
	}
	row0 := p.Mul(p.Builtin(devgen.GroupY), p.U(p.g.Rows))
	for r := range p.g.Rows {
		row := p.Min(p.Add(row0, p.U(r)), p.Sub(p.m, p.U(1)))
		t.rows = append(t.rows, p.Mul(row, p.aStride))
	}
	switch p.g.Path {
	case kernel.ComputeInt8:
		t.blocks()
	case kernel.ComputeInt8Superblock:
		t.superblocks()
	case kernel.ComputeInt8K:
		t.integers()
	default:
		t.wide()
	}
	for r := range p.g.Rows {
		row := p.Add(row0, p.U(r))
		for i, column := range t.columns {
			p.If(p.AndBool(p.Less(row, p.m), p.Less(column, p.n)), func() {
				var sums []devgen.Value
				for w := range p.w {
					sums = append(sums, p.Get(t.acc[i*len(p.w)+w][r]))
				}
				p.finish(row, column, sums)
			})
		}
	}
}

// addColumn adds the column `lane` of a panel, of `panels`, to the tile.
func (t *tile) addColumn(which, panels, lane devgen.Value) {
	t.columns = append(t.columns, t.MulAdd(which, t.U(qtype.PanelWidth), lane))
	first := t.Mul(t.Min(which, t.Sub(panels, t.U(1))), t.wStride)
	for _, w := range t.w {
		t.panels = append(t.panels, panel{Builder: t.Builder, d: t.g.Weight.Desc(), column: lane, table: t.table,
			load: func(word devgen.Value) devgen.Value { return t.Load(w, t.Add(first, word)) }})
		t.acc = append(t.acc, t.vars(t.g.Rows, t.F(0)))
	}
}

// blocks adds the chains of path int8: one FMA per block of 32 and span of the weights.
func (t *tile) blocks() {
	t.Range(t.Shr(t.k, t.U(5)), func(s devgen.Value) { t.block(s, t.acc, true) })
}

// superblocks adds the chains of path int8-256: a chain over the blocks of each superblock, added
// by one FMA with the scale of its activations.
func (t *tile) superblocks() {
	const blocks = kernel.ActQ8Group / kernel.ActQ8Block
	t.For(t.U(0), t.Shr(t.k, t.U(5)), t.U(blocks), func(first devgen.Value) {
		sums := make([][]devgen.Var, len(t.acc))
		for i := range sums {
			sums[i] = t.vars(t.g.Rows, t.F(0))
		}
		t.For(first, t.Add(first, t.U(blocks)), t.U(1), func(s devgen.Value) { t.block(s, sums, false) })
		for r, row := range t.rows {
			scale := t.LoadF(t.a, t.MulAdd(first, t.U(kernel.ActQ8Bytes/b32), row))
			for i := range sums {
				t.Set(t.acc[i][r], t.FMA(t.Get(sums[i][r]), scale, t.Get(t.acc[i][r])))
			}
		}
	})
}

// block adds sub-block s of every row and weight to the chains. scaled multiplies the scales of the
// weights by those of the activations.
func (t *tile) block(s devgen.Value, acc [][]devgen.Var, scaled bool) {
	d := t.g.Weight.Desc()
	spans := qtype.SubBlockK / d.Span()
	groups := qtype.SubBlockK / 4 / spans
	type column struct {
		words         [qtype.SubBlockK / 4]devgen.Value
		scale, offset []devgen.Value
	}
	columns := make([]column, len(t.panels))
	for i := range t.panels {
		c, p := &columns[i], &t.panels[i]
		sub := p.subBlock(s)
		for g, u := range p.numbers(sub) {
			c.words[g] = p.signed(u)
		}
		for n := range spans {
			scale, offset := p.scales(sub, n)
			c.scale, c.offset = append(c.scale, scale), append(c.offset, offset)
		}
	}
	for r, row := range t.rows {
		at := t.MulAdd(s, t.U(kernel.ActQ8Bytes/b32), row)
		word := func(offset int) devgen.Value { return t.Add(at, t.U(offset/b32)) }
		var q [qtype.SubBlockK / 4]devgen.Value
		for g := range q {
			q[g] = t.Load(t.a, word(kernel.ActQ+4*g))
		}
		for i := range columns {
			c, sum := &columns[i], acc[i][r]
			for n := range spans {
				dot := t.U(0)
				for g := n * groups; g < (n+1)*groups; g++ {
					dot = t.Dot4(q[g], c.words[g], dot)
				}
				scale := c.scale[n]
				if scaled {
					scale = t.FMul(scale, t.LoadF(t.a, word(kernel.ActScale)))
				}
				t.Set(sum, t.FMA(t.FromInt(dot), scale, t.Get(sum)))
				if d.Affine() {
					t.Set(sum, t.FMA(t.LoadF(t.a, word(kernel.ActSum)), c.offset[n], t.Get(sum)))
				}
			}
		}
	}
}

// GLU is a gated linear unit.
type GLU uint8

// The gated units; x is the output of the gate and y that of the up projection.
const (
	SwiGLU GLU = iota // x*sigmoid(x) * y
	GeGLU             // x*Phi(x) * y, with the tanh approximation
)

// String returns the name of the unit.
func (u GLU) String() string {
	switch u {
	case SwiGLU:
		return "swiglu"
	case GeGLU:
		return "geglu"
	}
	return fmt.Sprintf("glu(%d)", uint8(u))
}

// emit returns unit(gate, up).
func (u GLU) emit(b *devgen.Builder, gate, up devgen.Value) devgen.Value {
	x := b.FNeg(gate)
	if u == GeGLU {
		x = b.FMul(b.FMA(b.FMul(gate, gate), b.F(arith.GELUC3), b.F(arith.GELUC1)), gate)
	}
	return b.FMul(b.FDiv(gate, b.FAdd(b.F(1), b.Exp(x))), up)
}
