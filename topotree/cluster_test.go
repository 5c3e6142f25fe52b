package topotree

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// latencies simulates a measured matrix: near(i,j) times noise of the given relative standard
// deviation.
func latencies(r *rand.Rand, n int, noise float64, near func(i, j int) float64) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	for i := range m {
		for j := range i {
			v := near(i, j) * math.Max(0.05, 1+noise*r.NormFloat64())
			m[i][j], m[j][i] = v, v
		}
	}
	return m
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestClustersOfFour plants Kunpeng's clusters of four cores in nodes of 24 and finds exactly them
// under 10 % noise, with the transform that makes them.
func TestClustersOfFour(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	m := mustSynthetic(t, "pack:2 numa:2 l3:1 l2:24 core:1 pu:1")
	for trial := range 20 {
		matrix := latencies(r, 96, 0.1, func(i, j int) float64 {
			switch {
			case i/4 == j/4:
				return 35
			case i/24 == j/24:
				return 70
			case i/48 == j/48:
				return 140
			}
			return 260
		})
		found, err := FindClusters(indexes(96), matrix)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 || len(found[0].Sets) != 24 {
			t.Fatalf("trial %d: %d clusterings, want 24 clusters first", trial, len(found))
		}
		for i, s := range found[0].Sets {
			if !s.Equal(CPURange(4*i, 4*i+3)) {
				t.Fatalf("trial %d: cluster %s, want %s", trial, s, CPURange(4*i, 4*i+3))
			}
		}
		if p := Propose(m.Tree, found[0]); p.Group != Group(4, 1, 4) {
			t.Fatalf("trial %d: proposed %+v, want group(4,1,4)", trial, p)
		}
		if trial == 0 {
			if len(found) < 2 || Propose(m.Tree, found[1]).Known != KindNUMA {
				t.Errorf("the nodes were not found as the second level: %+v", found)
			}
		}
	}
}

// TestNoiseHasNoClusters: from pure noise comes nothing, whatever its size.
func TestNoiseHasNoClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, noise := range []float64{0.01, 0.1, 0.3} {
		for _, n := range []int{2, 3, 6, 8, 12, 24, 48} {
			for range 4000 / (n * n) * 4 {
				found, err := FindClusters(indexes(n), latencies(r, n, noise, func(i, j int) float64 { return 100 }))
				if err != nil || len(found) > 0 {
					t.Fatalf("noise %g, %d PUs: %+v, %v", noise, n, found, err)
				}
			}
		}
	}
	if found, err := FindClusters(indexes(192), latencies(r, 192, 0.1,
		func(i, j int) float64 { return 80 })); err != nil || len(found) > 0 {
		t.Fatalf("192 PUs: %+v, %v", found, err)
	}
}

// TestHiddenSMT finds hyper-threads that a hypervisor hides, from pairwise contention: siblings
// keep 55 % of their speed next to each other, others 97 %. The second threads are numbered after
// all first ones.
func TestHiddenSMT(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	m := mustSynthetic(t, "core:16")
	found, err := FindClusters(indexes(16), latencies(r, 16, 0.03, func(i, j int) float64 {
		if i%8 == j%8 {
			return 0.55
		}
		return 0.97
	}))
	if err != nil || len(found) == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	if p := Propose(m.Tree, found[0]); p.Group != Group(2, 8, 2) {
		t.Errorf("%+v, want group(2,8,2)", p)
	}
}

// TestSampledMatrix leaves out four fifths of the pairs, as a full probe of a large machine does.
func TestSampledMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	matrix := latencies(r, 64, 0.05, func(i, j int) float64 {
		if i/8 == j/8 {
			return 40
		}
		return 110
	})
	for i := range matrix {
		for j := range i {
			if i/8 != j/8 && r.IntN(5) > 0 {
				matrix[i][j], matrix[j][i] = math.NaN(), math.NaN()
			}
		}
	}
	found, err := FindClusters(indexes(64), matrix)
	if err != nil || len(found) != 1 || len(found[0].Sets) != 8 || found[0].Size() != 8 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestClustersRefuse(t *testing.T) {
	if _, err := FindClusters(indexes(3), make([][]float64, 2)); err == nil {
		t.Error("two rows for three PUs were taken")
	}
	if _, err := FindClusters(indexes(2), [][]float64{{0}, {0, 0}}); err == nil {
		t.Error("a short row was taken")
	}
	blank := slices.Repeat([][]float64{slices.Repeat([]float64{math.NaN()}, 8)}, 8)
	if found, err := FindClusters(indexes(8), blank); err != nil || len(found) > 0 {
		t.Errorf("nothing measured: %+v, %v", found, err)
	}
}

// TestMeasuredClasses colors slow nodes that no distance table shows, so that the fast ones alone
// become a plan.
func TestMeasuredClasses(t *testing.T) {
	m := mustSynthetic(t, "numa:4 core:4")
	colored, err := m.WithMeasured([]MeasuredClass{{"fast", CPURange(4, 11)}, {"slow", NewCPUSet(0, 1, 2, 3, 12,
		13, 14, 15)}})
	if err != nil {
		t.Fatal(err)
	}
	if p := colored.Tree.Palette(); len(p) != 2 || p[0].Name != "fast" || p[0].CPUs.String() != "4-11" {
		t.Fatalf("palette %+v", p)
	}
	if got := mustApply(t, colored.Tree, "only(0)").CPUs().String(); got != "4-11" {
		t.Errorf("the fast nodes alone are %s", got)
	}
	if got := mustApply(t, colored.Tree, "remove(2,2,1)").CPUs().String(); got != "0-1,4-13" {
		t.Errorf("half of the slow nodes off leaves %s", got)
	}
	if colored.Tree.Digest() == m.Tree.Digest() {
		t.Error("the digest does not see the classes")
	}
}
