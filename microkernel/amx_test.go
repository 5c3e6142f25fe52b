package microkernel

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/microkernel/internal/amd64/asm"
	amd64gemm "sandwich/microkernel/internal/amd64/gemm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/qtype"
)

func amxSpec(b WeightType, mr int) Spec {
	return Spec{ISA: AVX512, Compute: ComputeInt8, B: b, MR: mr, NR: PanelWidth, KU: 32, Dot: AMX}
}

// amxShapes are a whole tile of several panels, with prefetches, and a lower one of one.
func amxShapes(b WeightType) []Spec {
	whole := amxSpec(b, amd64gemm.AMXRows).WithSpread()
	whole.NR = 3 * PanelWidth
	return []Spec{whole, amxSpec(b, 3)}
}

// amxTypes is the weight types that AMX multiplies.
func amxTypes() (out []WeightType) {
	for _, b := range allWeightTypes() {
		if b.Quantized() {
			out = append(out, b)
		}
	}
	return out
}

// TestAMX runs the machine code of the kernels of every type against the oracle: odd sizes, blocks
// of k, guard pages, poisoned output. Where the CPU has no AMX the tile instructions, and only
// they, are interpreted.
func TestAMX(t *testing.T) {
	if !Host().Has(HasAVX512) || jit.Race {
		t.Skipf("this CPU (%s) has no AVX-512, or this is a race build", Host())
	}
	r := rand.New(rand.NewPCG(9, 9))
	for _, b := range amxTypes() {
		for _, s := range amxShapes(b) {
			m := &tileMachine{t: t}
			k := m.kernel(s)
			run := m.run(k)
			for range 3 {
				blocks := 1 + r.IntN(3)
				p := newProblem(t, r, k.Spec(), 1+r.IntN(40), 1+r.IntN(60), blocks*b.Block())
				p.checkRun(run, []int{b.Block() * r.IntN(blocks)})
			}
			// more than a piece of k
			long := newProblem(t, r, k.Spec(), 2*s.MR+1, s.NR, amd64gemm.AMXSubBlocks*qtype.SubBlockK+b.Block())
			long.checkRun(run, nil)
			if err := selfTest(k.Spec(), run, "vnni"); err != nil {
				t.Error(err)
			}
			if m.release == 0 {
				t.Errorf("%s: no tile was used", s)
			}
			if Host().Has(HasAMX) {
				checkSpec(t, r, s)
			}
		}
	}
}

// TestAMXSpecialValues checks that scales that are not finite, and denormals, give the results of
// the oracle.
func TestAMXSpecialValues(t *testing.T) {
	if !Host().Has(HasAVX512) || jit.Race {
		t.Skipf("this CPU (%s) has no AVX-512, or this is a race build", Host())
	}
	r := rand.New(rand.NewPCG(9, 10))
	for _, b := range []WeightType{Q8_0, Q4_0, Q4_1, IQ4_NL, Q2_K, Q6_K} {
		m := &tileMachine{t: t}
		k := m.kernel(amxSpec(b, 5))
		p := newProblem(t, r, k.Spec(), 7, 19, max(64, b.Block()))
		p.spoil(r)
		p.checkSpecial(m.run(k))
	}
	for _, s := range append(unitSpecs(ComputeInt8K, Q4_K, AMX), append(unitSpecs(ComputeInt8K, Q6_K, AMX),
		unitSpecs(ComputeBF16Tile, BF16, TDPBF16)...)...) {
		m := &tileMachine{t: t}
		k := m.kernel(s)
		p := newProblem(t, r, s, s.MR+3, s.NR+3, 512)
		p.spoil(r)
		p.checkSpecial(m.run(k))
	}
}

// TestAMXProof checks that a tile product that differs in the lowest bit of one number fails the
// self-test.
func TestAMXProof(t *testing.T) {
	if !Host().Has(HasAVX512) || jit.Race {
		t.Skipf("this CPU (%s) has no AVX-512, or this is a race build", Host())
	}
	m := &tileMachine{t: t}
	k := m.kernel(amxSpec(Q4_0, 4))
	for i := range m.sites {
		if strings.HasPrefix(m.sites[i].text, "tdpbssd") {
			m.sites[i].code[2] ^= 1 // F2 to F3: weights without sign
		}
	}
	if err := selfTest(k.Spec(), m.run(k), "vnni"); err == nil {
		t.Error("a wrong kernel was taken for right")
	}
}

// TestAMXCode pins the tile instructions of a kernel, whose bytes were compared with llvm-mc.
func TestAMXCode(t *testing.T) {
	for b, want := range map[WeightType][]string{
		Q8_0: {"c4e27b49c0", "c4e24b5ec4"},                             // tilezero tmm0; tdpbssd tmm0, tmm4, tmm6
		Q6_K: {"c4e27b49c0", "c4e24b5ec4", "c4e27b49c8", "c4e2435ecd"}, // tilezero tmm1; tdpbssd tmm1, tmm5, tmm7
	} {
		code, err := amxSpec(b, amd64gemm.AMXRows).Assemble()
		if err != nil {
			t.Fatal(err)
		}
		text := hex.EncodeToString(code)
		for _, w := range append(want, "c4e27849c0c5f877c3") { // tilerelease, vzeroupper, ret
			if !strings.Contains(text, w) {
				t.Errorf("%s: %s is not in the code", b, w)
			}
		}
		rows := [8]uint8{16, 16, 16, 16, 16, 16, 8, 8} // of sums, activations, weights
		bytes := [8]uint8{64, 64, 64, 64, 32, 32, 64, 64}
		if b == Q6_K {
			rows, bytes = [8]uint8{16, 16, 16, 16, 16, 16, 4, 4}, [8]uint8{64, 64, 64, 64, 16, 16, 64, 64}
		}
		if config := asm.TileConfig(rows, bytes); !strings.Contains(string(code), string(config[:])) {
			t.Errorf("%s: the configuration of the tiles is not in the code", b)
		}
	}
}

func TestAMXRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		say    string
	}{
		{func(s *Spec) { s.B = F16 }, "quantized"},
		{func(s *Spec) { s.MR = 17 }, "16 rows"},
		{func(s *Spec) { s.NR = 144 }, "NR 144"},
		{func(s *Spec) { s.ISA = AVX2 }, "amx does not exist on avx2"},
		{func(s *Spec) { s.Prefetch = 1024 }, "prefetch"},
		{func(s *Spec) { s.Form = Embed }, "embedded"},
		{func(s *Spec) { s.KU = 16 }, "KU"},
	} {
		s := amxSpec(Q4_0, 8)
		c.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), c.say) {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, b := range amxTypes() {
		if s, err := ParseSpec(amxSpec(b, 16).String()); err != nil || s != amxSpec(b, 16) || s.Validate() != nil {
			t.Errorf("%v, %v, %v", s, err, s.Validate())
		}
	}
	if Host().Has(HasAMX) {
		return
	}
	if _, err := Build(amxSpec(Q4_K, 16)); err == nil || !strings.Contains(err.Error(), "amx_int8") {
		t.Errorf("a kernel for a feature this CPU lacks: %v", err)
	}
}

// TestAMXPeak checks that the peak of a machine with AMX is the peak of its tiles.
func TestAMXPeak(t *testing.T) {
	code, ops, err := AVX512.Target().Probes.Peak("int8", HasAVX2|HasAVX512|HasVNNI|HasAMX)
	if err != nil {
		t.Fatal(err)
	}
	text := hex.EncodeToString(code)
	n := 0
	for tile := range 6 { // tdpbssd tmmN, tmm6, tmm7
		n += strings.Count(text, fmt.Sprintf("c4e2435e%02x", 0xC6|tile<<3))
	}
	if want := n * 2 * 16 * 16 * 64; n != 6 || ops != want || !strings.Contains(text, "c4e27849c0") {
		t.Errorf("%d products of tiles do %d operations in %s", n, ops, text)
	}
}

// unitSpecs are kernels whose sums stay in tiles: of whole pairs of row tiles with all panels, and
// smaller ones.
func unitSpecs(c Compute, b WeightType, dot Dot) (out []Spec) {
	for _, size := range [][2]int{{32, 64}, {16, 48}, {5, 16}} {
		out = append(out, Spec{ISA: AVX512, Compute: c, B: b, MR: size[0], NR: size[1], KU: 32, Dot: dot})
	}
	out[0] = out[0].WithSpread()
	return out
}

// TestAMXOverlap runs the machine code of kernels that unpack the next superblock while they
// multiply against the plain-Go definition: numbers of rows with each variant and without one,
// several panels and pieces of k. Kernels without it compute the same bits.
func TestAMXOverlap(t *testing.T) {
	if !Host().Has(HasAVX512) || jit.Race {
		t.Skipf("this CPU (%s) has no AVX-512, or this is a race build", Host())
	}
	r := rand.New(rand.NewPCG(9, 12))
	for i, b := range allWeightTypes() {
		if !ComputeInt8K.Takes(b) {
			continue
		}
		s := unitSpecs(ComputeInt8K, b, AMX)[0]
		s.Form = Overlap
		m := &tileMachine{t: t}
		run := m.run(m.kernel(s))
		for j, rows := range []int{63, 64 + r.IntN(64), 128 + r.IntN(64), 256 + r.IntN(64)} {
			k, columns := 512, 1+r.IntN(s.NR)
			if j == 1+i%3 { // more than a piece of k
				k, columns = 1280, 17+r.IntN(16)
			}
			newProblem(t, r, s, rows, columns, k).checkRun(run, []int{256})
		}
		if m.release == 0 {
			t.Errorf("%s: no tile was used", s)
		}
		if Host().Has(HasAMX) {
			checkSpec(t, r, s)
		}
	}
}

// TestOverlapInterleaves checks that the functions for whole pairs of row tiles place the stores of
// unpacking between products, an equal share in each variant.
func TestOverlapInterleaves(t *testing.T) {
	for panels, subBlocks := range []int{0, 4, 2, 1} {
		s := unitSpecs(ComputeInt8K, Q4_K, AMX)[0]
		s.Form, s.NR = Overlap, (1+panels)*PanelWidth
		a := asm.New(asm.AVX512)
		stores, between, products := 0, 0, 0
		a.Trace(func(text string) {
			switch {
			case strings.HasPrefix(text, "tdpbssd"):
				if products++; products <= 16 && stores > between {
					between = stores
				}
			case strings.HasPrefix(text, "vmovups") && strings.Contains(text, "[r15"):
				stores++
			}
		})
		amd64gemm.EmitAMX(a, s.Code())
		if _, err := a.Finish(); err != nil {
			t.Fatal(err)
		}
		const head = 2 + 4 // scales, and pairs of offsets
		want := 0
		if subBlocks > 0 {
			want = head + 2*2*8*subBlocks // with the first pair of row tiles, and in the loop
		}
		if stores != want || subBlocks > 0 && between < head+2*8*subBlocks/2 {
			t.Errorf("%s: %d stores of unpacking, %d before the last product of the first pair; want %d", s, stores,
				between, want)
		}
	}
}

// TestAMXSumsStayInTiles runs the machine code of the paths whose sums stay in tile registers
// against the plain-Go definition: every number of rows around tiles, columns around panels, cuts
// of k, and for bf16 an odd end of k.
func TestAMXSumsStayInTiles(t *testing.T) {
	if !Host().Has(HasAVX512) || jit.Race {
		t.Skipf("this CPU (%s) has no AVX-512, or this is a race build", Host())
	}
	r := rand.New(rand.NewPCG(9, 11))
	check := func(s Spec, blocks func() (k int, cuts []int)) {
		m := &tileMachine{t: t}
		run := m.run(m.kernel(s))
		for _, rows := range []int{1 + r.IntN(15), 16, 17 + r.IntN(15), 32, 33 + r.IntN(40)} {
			k, cuts := blocks()
			newProblem(t, r, s, rows, 1+r.IntN(2*s.NR), k).checkRun(run, cuts)
		}
		if m.release == 0 {
			t.Errorf("%s: no tile was used", s)
		}
		if Host().Has(HasAMX) {
			checkSpec(t, r, s)
		}
	}
	for _, b := range allWeightTypes() {
		if !ComputeInt8K.Takes(b) {
			continue
		}
		for _, s := range unitSpecs(ComputeInt8K, b, AMX) {
			check(s, func() (int, []int) { return 512, []int{256} })
		}
	}
	for _, s := range unitSpecs(ComputeBF16Tile, BF16, TDPBF16) {
		check(s, func() (int, []int) { return 64 + r.IntN(64), []int{32 * (1 + r.IntN(2))} })
		check(s, func() (int, []int) { return 1 + r.IntN(31), nil })
		check(s, func() (int, []int) { return 600, nil })
	}
}
