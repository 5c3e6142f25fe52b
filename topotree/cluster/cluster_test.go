package cluster

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/internal/topotest"
)

// TestClustersOfFour plants Kunpeng's clusters of four cores in nodes of 24 and finds exactly them
// under 10 % noise, with the transform that makes them.
func TestClustersOfFour(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	m := topotest.Synthetic(t, "pack:2 numa:2 l3:1 l2:24 core:1 pu:1")
	for trial := range 20 {
		matrix := topotest.Latencies(r, 96, 0.1, func(i, j int) float64 {
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
		found, err := Find(topotest.Indexes(96), matrix)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 || len(found[0].Sets) != 24 {
			t.Fatalf("trial %d: %d clusterings, want 24 clusters first", trial, len(found))
		}
		for i, s := range found[0].Sets {
			if !s.Equal(topotree.CPURange(4*i, 4*i+3)) {
				t.Fatalf("trial %d: cluster %s, want %s", trial, s, topotree.CPURange(4*i, 4*i+3))
			}
		}
		if p := Propose(m.Tree, found[0]); p.Group != topotree.Group(4, 1, 4) {
			t.Fatalf("trial %d: proposed %+v, want group(4,1,4)", trial, p)
		}
		if trial == 0 {
			if len(found) < 2 || Propose(m.Tree, found[1]).Known != topotree.KindNUMA {
				t.Errorf("the nodes were not found as the second level: %+v", found)
			}
		}
	}
}

// TestNoiseHasNoClusters checks that pure noise of any size yields no clusters.
func TestNoiseHasNoClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, noise := range []float64{0.01, 0.1, 0.3} {
		for _, n := range []int{2, 3, 6, 8, 12, 24, 48} {
			for range 4000 / (n * n) * 4 {
				found, err := Find(topotest.Indexes(n), topotest.Latencies(r, n, noise,
					func(i, j int) float64 { return 100 }))
				if err != nil || len(found) > 0 {
					t.Fatalf("noise %g, %d PUs: %+v, %v", noise, n, found, err)
				}
			}
		}
	}
	if found, err := Find(topotest.Indexes(192), topotest.Latencies(r, 192, 0.1,
		func(i, j int) float64 { return 80 })); err != nil || len(found) > 0 {
		t.Fatalf("192 PUs: %+v, %v", found, err)
	}
}

// TestHiddenSMT finds hyper-threads that a hypervisor hides, from pairwise contention: siblings
// keep 55 % of their speed next to each other, others 97 %. The second threads are numbered after
// all first ones.
func TestHiddenSMT(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	m := topotest.Synthetic(t, "core:16")
	found, err := Find(topotest.Indexes(16), topotest.Latencies(r, 16, 0.03, func(i, j int) float64 {
		if i%8 == j%8 {
			return 0.55
		}
		return 0.97
	}))
	if err != nil || len(found) == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	if p := Propose(m.Tree, found[0]); p.Group != topotree.Group(2, 8, 2) {
		t.Errorf("%+v, want group(2,8,2)", p)
	}
}

// TestSampledMatrix leaves out four fifths of the pairs, as a full probe of a large machine does.
func TestSampledMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	matrix := topotest.Latencies(r, 64, 0.05, func(i, j int) float64 {
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
	found, err := Find(topotest.Indexes(64), matrix)
	if err != nil || len(found) != 1 || len(found[0].Sets) != 8 || found[0].Size() != 8 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestClustersRefuse(t *testing.T) {
	if _, err := Find(topotest.Indexes(3), make([][]float64, 2)); err == nil {
		t.Error("two rows for three PUs were taken")
	}
	if _, err := Find(topotest.Indexes(2), [][]float64{{0}, {0, 0}}); err == nil {
		t.Error("a short row was taken")
	}
	blank := slices.Repeat([][]float64{slices.Repeat([]float64{math.NaN()}, 8)}, 8)
	if found, err := Find(topotest.Indexes(8), blank); err != nil || len(found) > 0 {
		t.Errorf("nothing measured: %+v, %v", found, err)
	}
}
