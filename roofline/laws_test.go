package roofline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/profiles"
)

// subset picks positions at random, one at least.
func subset(r *rand.Rand, n int) []int {
	out := r.Perm(n)[:1+r.IntN(n)]
	slices.Sort(out)
	return out
}

var avx2 = Path{"avx2", "f32"}

// TestRenumberingChangesNothing checks that a machine with other PU numbers gives the same answers.
func TestRenumberingChangesNothing(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(1, seed))
		h := randomTruth(r)
		h.speed[r.IntN(len(h.speed))] = 40 + 60*r.Float64()
		noises := make([]float64, 4*h.pus()+100)
		for i := range noises {
			noises[i] = 1 + 0.2*r.Float64()
		}
		replay := func() func() float64 {
			i := -1
			return func() float64 { i++; return noises[i%len(noises)] }
		}
		before := NewMachine(h.profile(t, replay()))
		positions := subset(r, h.pus())
		set, node := h.set(positions), r.IntN(h.nodes)
		other := *h
		other.names = r.Perm(h.pus())
		after := NewMachine(other.profile(t, replay()))
		renamed := other.set(positions)
		for what, pair := range map[string][2]Answer{
			"peak":        {before.Peak(set, avx2), after.Peak(renamed, avx2)},
			"bandwidth":   {before.Bandwidth(set, Local), after.Bandwidth(renamed, Local)},
			"remote":      {before.Bandwidth(set, node), after.Bandwidth(renamed, node)},
			"interleaved": {before.Bandwidth(set, Interleaved), after.Bandwidth(renamed, Interleaved)},
			"barrier":     {before.Barrier(set), after.Barrier(renamed)},
			"all-reduce":  {before.AllReduce(1<<16, 2), after.AllReduce(1<<16, 2)},
		} {
			same := math.Abs(pair[0].Value-pair[1].Value) <= 1e-9*pair[0].Value && pair[0].Assumed == pair[1].Assumed
			if !same || pair[0].Value <= 0 && set.Count() > 1 {
				t.Errorf("seed %d, %+v, %v: %s %+v and renumbered %+v", seed, h, positions, what, pair[0], pair[1])
			}
		}
	}
}

// TestPeakGrows checks that the peak of a superset is never below that of a subset, whatever the
// noise.
func TestPeakGrows(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(2, seed))
		h := randomTruth(r)
		h.speed[r.IntN(len(h.speed))] = 40 + 60*r.Float64()
		m := NewMachine(h.profile(t, func() float64 { return 0.7 + 0.6*r.Float64() }))
		last := 0.0
		positions := r.Perm(h.pus())
		for k := range positions {
			a := m.Peak(h.set(positions[:k+1]), avx2)
			if a.Value < last*(1-1e-12) {
				t.Fatalf("seed %d: %v has %g and with one PU less %g", seed, positions[:k+1], a.Value, last)
			}
			last = a.Value
		}
	}
}

// TestPeakOfExactFigures checks that a model from figures without noise equals the machine for
// every set of PUs.
func TestPeakOfExactFigures(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(3, seed))
		h := randomTruth(r)
		m := NewMachine(h.profile(t, exact))
		positions := subset(r, h.pus())
		if got, want := m.Peak(h.set(positions), avx2), h.peak(positions); math.Abs(got.Value/want-1) > 1e-9 ||
			got.Assumed {
			t.Errorf("seed %d: %+v %v: %+v, want %g", seed, h, positions, got, want)
		}
	}
}

// TestThrottledCoreLowersItsSets checks that a throttled core lowers the peak of the sets that
// contain it and of no other set.
func TestThrottledCoreLowersItsSets(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(4, seed))
		h := randomTruth(r)
		if len(h.speed) < 2 {
			continue
		}
		positions := subset(r, h.pus())
		before := NewMachine(h.profile(t, exact)).Peak(h.set(positions), avx2)
		slow := r.IntN(len(h.speed))
		h.speed[slow] = 50
		m := NewMachine(h.profile(t, exact))
		after := m.Peak(h.set(positions), avx2)
		holds := slices.ContainsFunc(positions, func(i int) bool { return i/h.smt == slow })
		if holds != (after.Value < before.Value*(1-1e-9)) || after.Value > before.Value*(1+1e-9) {
			t.Errorf("seed %d: %v with core %d at half speed (in it: %v): %g, before %g",
				seed, positions, slow, holds, after.Value, before.Value)
		}
		slowest, other := m.Class(h.names[slow*h.smt]), m.Class(h.names[(slow*h.smt+h.smt)%h.pus()])
		if slowest.ID != 1 || other.ID != 0 || slowest.Name != "50" {
			t.Errorf("classes %+v and %+v", slowest, other)
		}
	}
}

// TestBandwidthWithinItsDomains checks that a set never reads faster than its nodes were measured
// to, whatever the noise.
func TestBandwidthWithinItsDomains(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(5, seed))
		h := randomTruth(r)
		m := NewMachine(h.profile(t, func() float64 { return 0.7 + 0.6*r.Float64() }))
		positions := subset(r, h.pus())
		sum, seen := 0.0, map[int]bool{}
		for _, i := range positions {
			if node := i / (h.pus() / h.nodes); !seen[node] {
				seen[node] = true
				sum += m.Saturation(profiles.NodeDomain(node)).Value
			}
		}
		for _, node := range []int{Local, Interleaved, 0, h.nodes - 1} {
			if got := m.Bandwidth(h.set(positions), node); got.Value > sum*(1+1e-12) || got.Value <= 0 {
				t.Errorf("seed %d: %v read %g from %d, their nodes reach %g", seed, positions, got.Value, node, sum)
			}
		}
	}
}
