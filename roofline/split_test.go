package roofline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		n     int
		sides []Side
		want  []int
	}{
		{"even", 64, []Side{side(1, 16), side(1, 16)}, []int{32, 32}},
		{"three to one", 64, []Side{side(3, 16), side(1, 16)}, []int{48, 16}},
		{"one side idle", 64, []Side{side(1, 16), side(0, 16)}, []int{64, 0}},
		{"other side idle", 64, []Side{side(0, 16), side(1, 16)}, []int{0, 64}},
		{"one tile cannot be shared", 16, []Side{side(2, 16), side(1, 16)}, []int{16, 0}},
		{"one tile for the faster", 16, []Side{side(1, 16), side(2, 16)}, []int{0, 16}},
		{"distinct tiles", 96, []Side{side(2, 32), side(1, 8)}, []int{64, 32}},
		{"a slow side below its tile", 64, []Side{side(9, 16), side(1, 64)}, []int{64, 0}},
		{"the last tile is short", 40, []Side{side(1, 16), side(1, 16)}, []int{32, 8}},
		{"nothing", 0, []Side{side(1, 16), side(1, 16)}, []int{0, 0}},
		{"no rate", 32, []Side{side(0, 16), side(0, 16)}, []int{32, 0}},
		{"infinite is no rate", 32, []Side{side(inf, 16), side(1, 16)}, []int{0, 32}},
		{"not a number", 32, []Side{side(math.NaN(), 16), side(1, 16)}, []int{0, 32}},
		{"a part below the least", 64, []Side{{9, 1, 16}, {1, 1, 6}}, []int{58, 6}},
		{"one that is too slow for it", 64, []Side{{9, 1, 16}, {1, 1, 8}}, []int{64, 0}},
		{"fewer outputs than the least", 4, []Side{{1, 1, 6}, {2, 1, 14}}, []int{0, 4}},
		{"SMEPilot figure 3", 4096, []Side{side(2.92, 64), side(1.85, 16)}, []int{2496, 1600}},
	} {
		part := make([]int, len(c.sides))
		if Split(c.n, c.sides, part); !slices.Equal(part, c.want) {
			t.Errorf("%s: %v, want %v", c.name, part, c.want)
		}
	}
}

func side(rate float64, tile int) Side { return Side{Rate: rate, Tile: tile} }

// TestSplitLeavesOut checks that each part is at least as large as its side requires and that no
// side alone would finish earlier.
func TestSplitLeavesOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		n, sides, fastest := 1+rng.IntN(300), make([]Side, 1+rng.IntN(4)), 0.0
		for i := range sides {
			sides[i] = Side{Rate: 0.05 + rng.Float64(), Tile: 1, Least: rng.IntN(40)}
			fastest = max(fastest, sides[i].Rate)
		}
		part, sum := make([]int, len(sides)), 0
		Split(n, sides, part)
		for i, p := range part {
			if sum += p; p < 0 || p > 0 && p < min(n, sides[i].Least) {
				t.Fatalf("Split(%d, %v) = %v", n, sides, part)
			}
		}
		if sum != n || finish(sides, part) > float64(n)/fastest*(1+1e-9) {
			t.Fatalf("Split(%d, %v) = %v, the fastest alone takes %v", n, sides, part, float64(n)/fastest)
		}
	}
}

// finish is when the last of the sides is done with its part.
func finish(sides []Side, part []int) (last float64) {
	for i, s := range sides {
		if part[i] > 0 {
			last = math.Max(last, float64((part[i]+s.Tile-1)/s.Tile*s.Tile)/s.Rate)
		}
	}
	return last
}

// TestSplitIsOptimal checks that no other division into tiles ends sooner, that parts are whole
// tiles except for the last one, and that they cover everything.
func TestSplitIsOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tiles, rates := []int{1, 6, 8, 16, 32, 48}, []float64{0, 0.1, 0.5, 1, 1, 1.6, 9}
	for range 4000 {
		n := 1 + rng.IntN(300)
		sides := make([]Side, 1+rng.IntN(3))
		for i := range sides {
			sides[i] = side(rates[rng.IntN(len(rates))]*(1+float64(rng.IntN(3))/10), tiles[rng.IntN(len(tiles))])
		}
		sides[0].Rate += 0.05
		part := make([]int, len(sides))
		Split(n, sides, part)
		sum := 0
		for i, p := range part {
			if sum += p; p < 0 || p%sides[i].Tile != 0 && sum != n {
				t.Fatalf("Split(%d, %v) = %v: part %d is no whole number of tiles", n, sides, part, i)
			}
		}
		if sum != n {
			t.Fatalf("Split(%d, %v) = %v", n, sides, part)
		}
		if got, best := finish(sides, part), best(n, sides); got > best*(1+1e-9) {
			t.Fatalf("Split(%d, %v) = %v ends at %v, and %v is possible", n, sides, part, got, best)
		}
	}
}

// best is the earliest end of any division, by trying all of them.
func best(n int, sides []Side) float64 {
	if n <= 0 {
		return 0
	}
	s, smallest := sides[0], math.Inf(1)
	if len(sides) == 1 {
		if s.Rate == 0 {
			return smallest
		}
		return float64((n+s.Tile-1)/s.Tile*s.Tile) / s.Rate
	}
	for own := 0; own < n+s.Tile; own += s.Tile {
		took := 0.0
		if own > 0 && s.Rate == 0 {
			break
		} else if own > 0 {
			took = float64(own) / s.Rate
		}
		smallest = math.Min(smallest, math.Max(took, best(n-own, sides[1:])))
	}
	return smallest
}

// TestEndInChunks compares EndInChunks with a simulation in which the first free side takes the
// next chunk.
func TestEndInChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 4000 {
		sides, chunks, n := make([]Side, 1+rng.IntN(5)), 1+rng.IntN(60), 1+rng.IntN(1000)
		for i := range sides {
			sides[i] = side(0.05+rng.Float64(), 1)
		}
		if rng.IntN(4) == 0 { // alike
			for i := range sides {
				sides[i] = sides[0]
			}
		}
		free, want := make([]float64, len(sides)), 0.0
		for range chunks {
			first := 0
			for i := range free {
				if free[i] < free[first] || free[i] == free[first] && sides[i].Rate > sides[first].Rate {
					first = i
				}
			}
			free[first] += float64(n) / float64(chunks) / sides[first].Rate
			want = max(want, free[first])
		}
		if got := EndInChunks(n, chunks, sides); chunks >= len(sides) && math.Abs(got-want) > 1e-6*want {
			t.Fatalf("%d outputs in %d chunks on %v end at %v, want %v", n, chunks, sides, got, want)
		}
	}
	for _, none := range [][]Side{nil, {side(0, 1)}, {side(math.Inf(1), 1)}} {
		if got := EndInChunks(8, 4, none); !math.IsInf(got, 1) {
			t.Errorf("%v end at %v", none, got)
		}
	}
}
