package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// transfer is an asynchronous copy of an invocation in each stage.
type transfer struct {
	present  devgen.Value
	array    devgen.Array
	to       devgen.Value // word of the first stage
	stage    int          // words of a stage
	from     devgen.Buffer
	first    devgen.Value // word at the first block
	block    int          // words from one block of the operand to the next
	parts    int          // sub-blocks of 32 k of a block
	subBlock devgen.Value // words from one sub-block of a block to the next
}

// planActivations plans the copies of rows of A, one block of quantized activations each: with its
// scale and sums, or for path int8-k its integers alone. Rows of the tile have the same distance
// for all paths, by which lanes of a warp read different banks.
func (t *tensor) planActivations(local devgen.Value) {
	chunks, block, parts, each := actWords/chunk, actWords, 1, 0
	if t.g.Path == kernel.ComputeInt8K {
		each = qtype.SubBlockK / b32
		chunks, block, parts = each/chunk, superblockWords, superblockBlocks
	}
	total := t.g.Rows * chunks
	for first := 0; first < total; first += tensorSize {
		i := t.Add(local, t.U(first))
		row, c := t.Div(i, t.U(chunks)), t.Rem(i, t.U(chunks))
		from := t.Min(t.Add(t.row0, row), t.Sub(t.m, t.U(1)))
		t.copies = append(t.copies, transfer{present: t.Less(i, t.U(total)), array: t.aTile,
			to: t.MulAdd(row, t.U(actWords), t.Shl(c, t.U(2))), stage: t.g.Rows * actWords, from: t.a,
			first: t.MulAdd(from, t.aStride, t.Shl(c, t.U(2))), block: block, parts: parts, subBlock: t.U(each)})
	}
}

// planWeights plans the copies of the panels of a weight.
func (t *tensor) planWeights(local devgen.Value, weight int) {
	chunks, head := t.subWords()/chunk, t.d.HeadBytes()/b32/chunk
	planes := head + t.d.SubBytes()/b32/chunk
	last := t.Sub(t.Shr(t.Add(t.n, t.U(qtype.PanelWidth-1)), t.U(4)), t.U(1))
	total := t.tilePanels() * chunks
	for first := 0; first < total; first += tensorSize {
		i := t.Add(local, t.U(first))
		panel, c := t.Div(i, t.U(chunks)), t.Rem(i, t.U(chunks))
		// Lines of numbers are placed so that lanes of a warp read different banks, see numbers.
		line := t.Sub(c, t.U(planes))
		moved := t.Xor(line, t.And(t.Shr(line, t.U(2)), t.U(2)))
		to := t.Select(t.Less(c, t.U(planes)), c, t.Add(moved, t.U(planes)))
		from := t.Min(t.Add(t.panel0, panel), last)
		base := t.Add(t.MulAdd(panel, t.U(t.subWords()), t.Shl(to, t.U(2))), t.U(weight*t.tilePanels()*t.subWords()))
		t.copies = append(t.copies, transfer{present: t.Less(i, t.U(total)), array: t.wTile, to: base,
			stage: len(t.w) * t.tilePanels() * t.subWords(), from: t.w[weight],
			first: t.MulAdd(from, t.wStride, t.Shl(c, t.U(2))), block: t.d.PanelBytes() / b32,
			parts: t.d.SubBlocks(), subBlock: t.Select(t.Less(c, t.U(head)), t.U(0), t.U(t.d.SubBlockBytes()/b32))})
	}
}

// issue begins the copies of block s, if there is one, and commits them.
func (t *tensor) issue(s devgen.Value) {
	t.If(t.Less(s, t.blocks), func() {
		stage := t.Rem(s, t.U(stages))
		for _, c := range t.copies {
			from := t.Add(c.first, t.Mul(s, t.U(c.block)))
			if n := c.parts; n > 1 {
				from = t.Add(c.first, t.Mul(t.Div(s, t.U(n)), t.U(c.block)), t.Mul(t.Rem(s, t.U(n)), c.subBlock))
			}
			t.If(c.present, func() {
				t.CopyAsync(c.array, t.MulAdd(stage, t.U(c.stage), c.to), c.from, from)
			})
		}
	})
	t.CommitAsync()
}
