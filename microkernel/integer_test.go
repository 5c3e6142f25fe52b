package microkernel

import (
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/internal/jit"
)

// TestIntegerScales runs kernels of the path int8-k of every type that takes it, on every
// instruction set and with every dot product of this host, against the plain-Go definition: bits
// are equal for any number of rows, columns and cuts of k.
func TestIntegerScales(t *testing.T) {
	type kind struct {
		isa ISA
		dot Dot
		nr  int
	}
	r := rand.New(rand.NewPCG(48, 1))
	for _, b := range allWeightTypes() {
		if !ComputeInt8K.Takes(b) {
			continue
		}
		for _, isa := range Host().ISAs() {
			seen := map[kind]Spec{}
			for _, s := range Space(Host(), isa, ComputeInt8K, b) {
				seen[kind{s.ISA, s.Dot, s.NR}] = s // the highest tile
			}
			if len(seen) == 0 {
				t.Errorf("%s has no kernel for %s", isa, b)
			}
			for _, s := range seen {
				checkSpec(t, r, s)
				if p := s.WithPrefetch(1024); !jit.Race && p.Validate() == nil {
					checkSpec(t, r, p)
				}
				if p := s.WithSpread(); !jit.Race && p.Validate() == nil {
					checkSpec(t, r, p)
				}
			}
		}
	}
}

// TestScaledWeightsFitPlanes checks that integers times scales, of any bytes that a panel may hold,
// fit the two planes of a matrix unit, and their sums 32 bits.
func TestScaledWeightsFitPlanes(t *testing.T) {
	for _, b := range allWeightTypes() {
		if !ComputeInt8K.Takes(b) {
			continue
		}
		d, most := b.Desc(), 0
		for u := range 1 << d.Bits() {
			for s := range 256 {
				for _, k := range []int{0, d.Span() % 32} {
					scale, offset := d.IntegerScales([2]uint8{uint8(s), uint8(s)}, k)
					most = max(most, scale*d.Integer(uint8(u)), -scale*d.Integer(uint8(u)))
					if offset > 255 || offset < 0 {
						t.Errorf("%s: offset %d", b, offset)
					}
				}
			}
		}
		if most >= 1<<14 || most*127*256 >= 1<<31 {
			t.Errorf("%s: scaled weights reach %d", b, most)
		}
	}
}
