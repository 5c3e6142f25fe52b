// Package hosttest makes the machines that the tests of plans are for. Only tests import it.
package hosttest

import (
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// BF16 is a machine with VDPBF16PS.
var BF16 = []string{"avx2", "avx512", "avx512_bf16", "avx512_vnni"}

// Cores is a machine of cores without siblings in one package, with 2 MiB of L2 each.
func Cores(t testing.TB, cores int, isa ...string) *profiles.Profile {
	t.Helper()
	all := topotree.CPURange(0, cores-1)
	d := topotree.Description{Source: "test", Arch: "x86_64", Model: "Test CPU", Online: all,
		Memory: []topotree.MemoryNode{{ID: 0, CPUs: all, Bytes: 16 << 30}}}
	core := topotree.LevelData{Kind: topotree.KindCore}
	l2 := topotree.LevelData{Kind: topotree.KindL2, Bytes: 2 << 20}
	for c := range cores {
		core.Sets = append(core.Sets, topotree.NewCPUSet(c))
		l2.Sets = append(l2.Sets, topotree.NewCPUSet(c))
	}
	d.Levels = []topotree.LevelData{{Kind: topotree.KindPackage, Sets: []topotree.CPUSet{all}}, l2, core}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{ISA: isa, L1D: 48 << 10})
}

// Tiles returns the same machine with TDPBF16PS.
var Tiles = append([]string{"amx_int8"}, BF16...)

// Attending is a machine whose attention was measured by some dot products: on one PU.
func Attending(t testing.TB, rates map[string]float64, isa ...string) *profiles.Profile {
	t.Helper()
	h := Cores(t, 2, isa...)
	for by, rate := range rates {
		h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: h.Features().Best().String(),
			Type: "attend-" + by, PUs: 1, Figure: profiles.Figure{Median: rate, N: 9, Unit: "FLOP/s"}})
	}
	return h
}

// Rated returns the profile of a machine with two PUs and measured f32 and bf16 ceilings: the given
// rates (FLOP/s) on one PU, twice these on two.
func Rated(t testing.TB, f32, bf16 float64, isa ...string) *profiles.Profile {
	t.Helper()
	h := Cores(t, 2, isa...)
	for pus := 1; pus <= 2; pus++ {
		for typ, rate := range map[string]float64{"f32": f32, "bf16": bf16} {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: h.Features().Best().String(),
				Type: typ, PUs: pus,
				Figure: profiles.Figure{Median: float64(pus) * rate, N: 9, Unit: "FLOP/s"}})
		}
	}
	return h
}
