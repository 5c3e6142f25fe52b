package microkernel

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/microkernel/internal/asm"
)

func amxSpec(mr int) Spec {
	return Spec{ISA: AVX512, Compute: ComputeInt8, B: Q8_0, MR: mr, NR: PanelWidth, KU: 32, Dot: AMX}
}

// vnniForTiles does with VNNI what the tile instructions do: the sums of a block into the arguments. All else of the function is
// then what a machine with AMX runs.
var vnniForTiles = amxEngine{
	begin: func(*amxTile) {},
	end:   func(*amxTile) {},
	block: func(e *amxTile) {
		for r := range e.s.MR {
			d, x, w := e.d[0], e.x[0], e.d[1]
			e.zero(d)
			for g := range turnK / 4 {
				e.I(asm.VPBROADCASTD, x, e.a(r, actQ+4*g))
				e.I(asm.VMOVUPS, w, asm.At(e.bBase[0], e.quants()+64*g))
				e.I(asm.VPDPBUSD, d, w, x)
			}
			e.I(asm.VMOVUPS, asm.At(rArgs, amxSums(r)), d)
		}
	},
}

// amxKernel is a kernel of Dot AMX whose tile products are another's.
func amxKernel(t *testing.T, s Spec, engine amxEngine) *Kernel {
	k := &Kernel{spec: s}
	var codes [][]byte
	_ = s.eachTile(func(tile Spec) error {
		code, err := assemble(AVX512, func(a *asm.Asm) { emitAMXWith(a, tile, engine) })
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
		return nil
	})
	var err error
	if k.tiles, err = load(codes...); err != nil {
		t.Skip(err)
	}
	return k
}

// TestAMXAroundTheTiles checks everything of the function but the tile instructions, whose work VNNI does here.
func TestAMXAroundTheTiles(t *testing.T) {
	if !Host().Has(HasAVX512|HasVNNI) || raceEnabled {
		t.Skip("needs AVX-512 with VNNI")
	}
	r := rand.New(rand.NewPCG(9, 9))
	k := amxKernel(t, amxSpec(amxRows), vnniForTiles)
	for range 40 {
		m, n, blocks := 1+r.IntN(40), 1+r.IntN(50), 1+r.IntN(6)
		p := newProblem(t, r, k.spec, m, n, 32*blocks)
		p.check(k, []int{32 * r.IntN(blocks)})
	}
	if err := k.proven(); err != nil {
		t.Error(err)
	}
}

// TestAMXProof: a tile product that is wrong does not pass for a kernel.
func TestAMXProof(t *testing.T) {
	if !Host().Has(HasAVX512|HasVNNI) || raceEnabled {
		t.Skip("needs AVX-512 with VNNI")
	}
	wrong := vnniForTiles
	wrong.block = func(e *amxTile) {
		vnniForTiles.block(e)
		e.I(asm.VPADDD, e.d[0], e.d[0], e.ConstU32(1).Bcast())
		e.I(asm.VMOVUPS, asm.At(rArgs, amxSums(e.s.MR-1)), e.d[0])
	}
	if err := amxKernel(t, amxSpec(4), wrong).proven(); err == nil {
		t.Error("a wrong kernel was taken for right")
	}
}

// TestAMXCode pins the block of tile instructions, whose bytes were compared with llvm-mc.
func TestAMXCode(t *testing.T) {
	code, err := amxSpec(amxRows).Assemble()
	if err != nil {
		t.Fatal(err)
	}
	text := hex.EncodeToString(code)
	for _, want := range []string{
		"c4e27b49c0",         // tilezero tmm0
		"c4e26a5ec1",         // tdpbsud tmm0, tmm1, tmm2
		"c4e27849c0c5f877c3", // tilerelease, vzeroupper, ret
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the code", want)
		}
	}
	config := asm.TileConfig([8]uint8{16, 16, 8}, [8]uint8{64, 32, 64})
	if !strings.Contains(string(code), string(config[:])) {
		t.Error("the configuration of the tiles is not in the code")
	}
}

func TestAMXRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		say    string
	}{
		{func(s *Spec) { s.B = Q4_0 }, "q8_0"},
		{func(s *Spec) { s.MR = 17 }, "16 rows"},
		{func(s *Spec) { s.NR = 32 }, "16 columns"},
		{func(s *Spec) { s.ISA = AVX2 }, "amx goes with avx512"},
		{func(s *Spec) { s.Prefetch = 1024 }, "prefetch"},
	} {
		s := amxSpec(8)
		c.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), c.say) {
			t.Errorf("%s: %v", s, err)
		}
	}
	s, err := ParseSpec(amxSpec(16).String())
	if err != nil || s != amxSpec(16) {
		t.Errorf("%v, %v", s, err)
	}
	if Host().Has(HasAMX) {
		return
	}
	if _, err := Build(amxSpec(16)); err == nil || !strings.Contains(err.Error(), "amx_int8") {
		t.Errorf("a kernel for a feature this CPU lacks: %v", err)
	}
}
