package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	_ "sandwich/microkernel/internal/amd64"
	_ "sandwich/microkernel/internal/arm64"
	"sandwich/microkernel/qtype"
)

// TestPlainFloats compares generated code, if this host runs it, with the definition of packing for
// rows of random bits: all numbers of columns, lengths around the steps and buffers of the code,
// rows that are not aligned to cache lines, and panels that held other data. Nothing is written
// after the panel.
func TestPlainFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for _, id := range []qtype.Type{qtype.F32, qtype.F16, qtype.BF16} {
		d := id.Desc()
		size, p := d.Bytes/d.Block, For(d)
		lengths := []int{1, 2, 3, 7, 8, 9, 255, 256, 257, 263, 511, 512, 513, 527, 1024, 1031}
		for range 20 {
			lengths = append(lengths, 1+rng.IntN(1300))
		}
		for _, k := range lengths {
			for _, columns := range []int{qtype.PanelWidth, 1 + rng.IntN(qtype.PanelWidth)} {
				stride, from := size*(k+rng.IntN(40)), rng.IntN(8)
				src := make([]byte, from+columns*stride)
				for i := range src {
					src[i] = byte(rng.Uint32())
				}
				src = src[from : from+(columns-1)*stride+size*k]
				want := defineFloats(d, src, stride, columns, k)
				const behind = 64
				got := bytes.Repeat([]byte{0xA5}, len(want)+behind)
				p.Panel(got[:len(want)], src, stride, columns, k)
				if !bytes.Equal(got[:len(want)], want) {
					t.Fatalf("%s, %d columns of %d: not what the layout says", d.Name, columns, k)
				}
				if !bytes.Equal(got[len(want):], bytes.Repeat([]byte{0xA5}, behind)) {
					t.Fatalf("%s, %d columns of %d: wrote behind the panel", d.Name, columns, k)
				}
			}
		}
	}
}

// defineFloats returns a panel computed element by element: lines of sixteen elements, pairs of
// bfloat16 next to each other.
func defineFloats(d *qtype.Desc, src []byte, stride, columns, k int) []byte {
	size, together := d.Bytes/d.Block, 1
	if d.Float == qtype.Brain {
		together = 2
	}
	lines := (k + together - 1) / together
	out := make([]byte, lines*together*size*qtype.PanelWidth)
	for i := range k {
		for c := range columns {
			at := (i/together*qtype.PanelWidth+c)*together + i%together
			copy(out[at*size:][:size], src[c*stride+i*size:])
		}
	}
	return out
}
