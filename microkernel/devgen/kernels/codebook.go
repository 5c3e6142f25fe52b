package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
)

// codebookEntries is the number of pairs of four-bit numbers.
const codebookEntries = 256

// newCodebook writes the values of each pair of numbers of a codebook to a shared array, as two
// bytes of a word, by all invocations of a workgroup of size invocations. It returns no array for a
// type without a codebook.
func newCodebook(b *devgen.Builder, d *qtype.Desc, size int) (table devgen.Array) {
	if d.Codebook == nil {
		return table
	}
	table = b.Shared("codebook", codebookEntries)
	var words [4]devgen.Value // four values each
	for i := range words {
		word := uint32(0)
		for j := range 4 {
			word |= uint32(uint8(d.Codebook[4*i+j])) << (8 * j)
		}
		words[i] = b.U(int(word))
	}
	value := func(number devgen.Value) devgen.Value {
		which, word := b.Shr(number, b.U(2)), words[3]
		for i := 2; i >= 0; i-- {
			word = b.Select(b.Equal(which, b.U(i)), words[i], word)
		}
		return b.And(b.Shr(word, b.Shl(b.And(number, b.U(3)), b.U(3))), b.U(0xff))
	}
	b.For(b.Builtin(devgen.LocalIndex), b.U(codebookEntries), b.U(size), func(i devgen.Value) {
		b.StoreShared(table, i, b.Or(value(b.And(i, b.U(15))), b.Shl(value(b.Shr(i, b.U(4))), b.U(8))))
	})
	b.Barrier()
	return table
}

// select4 returns the values of four numbers of at most four bits each, as signed bytes.
func (p *panel) select4(u devgen.Value) devgen.Value {
	pairs := p.Or(u, p.Shr(u, p.U(4)))
	first := p.LoadShared(p.table, p.And(pairs, p.U(0xff)))
	second := p.LoadShared(p.table, p.Field(pairs, 16, 8))
	return p.Or(first, p.Shl(second, p.U(16)))
}
