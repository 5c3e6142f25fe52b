package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kerneltest"
)

// TestAttentionRanges checks that a context that is divided into ranges of blocks gives the bits of
// the whole, for every division and order of computation.
func TestAttentionRanges(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for i, dim := range []int{64, 20, 128, 96} {
			for _, elem := range []KVType{KVF16, KVF32, KVQ8} {
				l := KVLayout{HeadDim: dim, Elem: elem}
				if l.Check() != nil {
					continue
				}
				dots := dotsOn(v.ISA(), elem)
				a, err := NewAttention(v.ISA(), l, AttentionForm{Dot: dots[rng.IntN(len(dots))]})
				if err != nil {
					t.Fatal(err)
				}
				if a.code == nil && i > 1 {
					continue // the oracle is slow
				}
				for _, size := range [][3]int{{1, 1 + rng.IntN(4), rng.IntN(700)}, {1, 8, 63}, {1, 17, 300},
					{3, 5, 190}} {
					c := newAttentionCase(t, rng, l, size[0], size[1], size[2])
					scratch := make([]byte, a.ScratchBytes())
					want, got := c.out(), c.out()
					a.Run(c.job(0, c.tokens, want), unsafe.Pointer(&scratch[0]))
					runRanges(t, rng, a, c.job(0, c.tokens, got), scratch)
					wantSame(t, fmt.Sprintf("dim %d %s by %s tokens, group, pos %v", dim, elem, a.form.Dot, size), got,
						want)
				}
			}
		}
	})
}

// runRanges cuts a job at random.
func runRanges(t *testing.T, rng *rand.Rand, a *Attention, job *AttentionJob, scratch []byte) {
	from, blocks := job.Blocks()
	states := AttentionStates{First: from + 1 + rng.IntN(blocks-from)}
	memory := kerneltest.Guarded(t, (1+blocks-states.First)*a.StateBytes(job.Tokens*job.Group))
	for i := range memory {
		memory[i] = 0xff
	}
	states.Memory = unsafe.Pointer(&memory[0])
	ranges := [][2]int{{from, states.First}}
	for at := states.First; at < blocks; {
		n := 1 + rng.IntN(blocks-at)
		ranges = append(ranges, [2]int{at, at + n})
		at += n
	}
	rng.Shuffle(len(ranges), func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
	for _, r := range ranges {
		a.RunRange(job, &states, r[0], r[1], unsafe.Pointer(&scratch[0]))
	}
	a.MergeRanges(job, &states)
}
