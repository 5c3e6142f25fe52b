package vec

import (
	"fmt"
	"strings"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/internal/vecgen"
)

// AttentionDot is what attention adds up scores and values by: chains of rule 6 in float32; a dot
// product of bfloat16, which rounds queries, keys, probabilities and values first and adds as its
// instruction does; or one of integers, which rounds queries and probabilities to eight bits and
// takes keys and values of KVQ8 as they are stored (attention_int8.go). Maxima, probabilities,
// their sums and the merging of blocks are float32 in any case.
type AttentionDot uint8

// The dot products of attention, named as their instructions.
const (
	AttendF32     = AttentionDot(vecgen.FMA)
	AttendDPBF16  = AttentionDot(vecgen.DPBF16)
	AttendTDPBF16 = AttentionDot(vecgen.TDPBF16)
	AttendDPBUSD  = AttentionDot(vecgen.DPBUSD)
)

// attentionDots are their names and what they need beyond their instruction set.
var attentionDots = [...]struct {
	name  string
	needs kernel.Features
}{
	AttendF32:     {"f32", 0},
	AttendDPBF16:  {"dpbf16", kernel.HasBF16},
	AttendTDPBF16: {"tdpbf16", kernel.HasBF16 | kernel.HasAMX},
	AttendDPBUSD:  {"dpbusd", kernel.HasVNNI},
}

// AttentionDots lists them.
func AttentionDots() []AttentionDot {
	return []AttentionDot{AttendF32, AttendDPBF16, AttendTDPBF16, AttendDPBUSD}
}

// String is the name that flags and plans use.
func (d AttentionDot) String() string {
	if int(d) < len(attentionDots) {
		return attentionDots[d].name
	}
	return fmt.Sprintf("attention(%d)", uint8(d))
}

// ParseAttentionDot is the inverse of String.
func ParseAttentionDot(s string) (AttentionDot, error) {
	var names []string
	for _, d := range AttentionDots() {
		if d.String() == s {
			return d, nil
		}
		names = append(names, d.String())
	}
	return 0, fmt.Errorf("attention by %.40q is not supported: use %s", s, strings.Join(names, ", "))
}

// MarshalText lets plan files spell a dot product by name.
func (d AttentionDot) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the name of a dot product.
func (d *AttentionDot) UnmarshalText(b []byte) (err error) {
	*d, err = ParseAttentionDot(string(b))
	return err
}

// Exact says that its bits are those of any machine: what a dot product of integers adds up is
// exact, and all else are operations of IEEE 754.
func (d AttentionDot) Exact() bool { return !d.rounds() }

// rounds says that it rounds to bfloat16.
func (d AttentionDot) rounds() bool { return d == AttendDPBF16 || d == AttendTDPBF16 }

// Reads refuses a type of cache that it cannot add up. What multiplies integers finds them in
// KVQ8 alone, whose heads have a multiple of 32 dimensions.
func (d AttentionDot) Reads(t KVType) error {
	if d == AttendDPBUSD && t != KVQ8 {
		return fmt.Errorf("attention by %s multiplies integers and needs a %s KV cache, not %s", d, KVQ8, t)
	}
	return nil
}

// Needs is what a CPU must have for it beyond the instruction set of the kernels.
func (d AttentionDot) Needs() kernel.Features {
	if int(d) < len(attentionDots) {
		return attentionDots[d].needs
	}
	return 0
}

// On says that the kernels of an instruction set have it, on a CPU with the features. Plain Go has
// all of them.
func (d AttentionDot) On(isa kernel.ISA, f kernel.Features) bool {
	return !isa.Generates() || f.Has(d.Needs()) && isa.Target().FusedRows(vecgen.Dot(d)) > 0
}

// runsOn refuses an instruction set, or this host, that lacks the dot product.
func (d AttentionDot) runsOn(isa kernel.ISA, cpu kernel.Features) error {
	if d.On(isa, cpu) {
		return nil
	}
	return fmt.Errorf("attention by %s: %s on this host (%s) has no such dot product", d, isa, cpu)
}

// loadPairs generates the kernels that read opened blocks, pairs of bfloat16 or lines of integers,
// and what opens a block.
func (a *Attention) loadPairs(isa kernel.ISA) error {
	k := a.kernel(0)
	k.Paired = true
	var err error
	if a.wide, err = loadAttention(isa, k); err != nil {
		return err
	}
	code, err := isa.Target().Pairs(a.kernel(isa.Target().FusedRows(k.Dot)))
	if err != nil {
		return err
	}
	pairs, err := jit.Load(code)
	if err != nil {
		return err
	}
	a.pairs = pairs[0]
	return nil
}

// openBlock leaves a block at dst as the wide kernels read it, of which they see so many positions;
// next is the block after it. No call through a value of a function: what it gets would escape.
func (a *Attention) openBlock(dst, block, next, scratch unsafe.Pointer, seen int) {
	if !a.pairs.Valid() {
		a.vec.widenPair(a.layout, dst, block)
		return
	}
	args := vecgen.FusedArgs{KV: block, State: dst, Scratch: scratch, Blocks: seen, After: next}
	a.pairs.Call(unsafe.Pointer(&args))
}

// roundQuery rounds a query vector to what the dot product multiplies: to blocks of integers, or to
// bfloat16 with zeros up to whole steps.
func (a *Attention) roundQuery(dst unsafe.Pointer, src *float32) {
	dim := a.layout.HeadDim
	if a.form.Dot == AttendDPBUSD {
		a.vec.quantizeRowQ8(src, dim, dst)
		return
	}
	a.vec.roundQueryBF16(src, dim, dst)
	clear(vecOf((*byte)(unsafe.Add(dst, 2*dim)), a.room.query-2*dim))
}

// refRound is what the dot product takes numbers for, those below least for zeros.
func (d AttentionDot) refRound(least float32, x []float32) []float32 {
	if !d.rounds() {
		return x
	}
	out := make([]float32, len(x))
	for i, e := range x {
		out[i] = ref.FromBF16(ref.RoundBF16(above(least, e)))
	}
	return out
}

// refSum is the definition of a sum of n products, whose factors at(0), at(1) and so on are, the
// first of each rounded already.
func (d AttentionDot) refSum(n int, at func(i int) (x, y float32)) (sum float32) {
	switch d {
	case AttendDPBF16:
		for i := 0; i < n; i += 2 {
			x, y := refPair(n, i, at)
			sum = ref.DotPairX86(x, y, sum)
		}
	case AttendTDPBF16:
		const step = 32
		for k := 0; k < n; k += step {
			var even, odd float32
			for i := k; i < min(n, k+step); i += 2 {
				x, y := refPair(n, i, at)
				even, odd = ref.FMAFlush(x[0], y[0], even), ref.FMAFlush(x[1], y[1], odd)
			}
			sum = ref.AddFlush(sum, ref.AddFlush(even, odd))
		}
	default:
		for i := range n {
			x, y := at(i)
			sum = ref.FMA32(x, y, sum)
		}
	}
	return sum
}

// refPair is the factors i and i+1 of n, the second of each as bfloat16, with zeros behind the
// last.
func refPair(n, i int, at func(i int) (x, y float32)) (x, y [2]float32) {
	for j := range min(2, n-i) {
		a, b := at(i + j)
		x[j], y[j] = a, ref.FromBF16(ref.RoundBF16(b))
	}
	return x, y
}
