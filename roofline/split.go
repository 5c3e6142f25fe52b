package roofline

import "math"

// Side is one of the two parties that share an operator: how fast it is and how coarse.
type Side struct {
	Rate float64 // FLOP/s; only the ratio matters
	Tile int     // its kernel's tile along the split dimension, at least 1
}

// Split divides n outputs between a and b in the ratio of their rates (SMEPilot equation 1),
// rounded to the tiles: a gets the first na outputs, a multiple of its tile, b the rest, cut into
// its own tiles (the last may be short and costs a whole one). Among the boundaries near the ideal
// point it takes the one whose later completion is least; ties go to the larger na. na is 0 or n
// when one side alone is fastest.
func Split(n int, a, b Side) (na, nb int) {
	if n <= 0 || a.Rate <= 0 {
		return 0, max(n, 0)
	}
	if b.Rate <= 0 {
		return n, 0
	}
	ideal := float64(n) * a.Rate / (a.Rate + b.Rate)
	first := int(ideal) / a.Tile * a.Tile
	best, cost := n, completion(n, 0, a, b)
	reach := max(1, (b.Tile+a.Tile-1)/a.Tile) // boundaries of a within one tile of b on either side
	for i := -reach; i <= reach+1; i++ {
		cut := first + i*a.Tile
		if cut < 0 || cut >= n {
			continue
		}
		if c := completion(cut, n-cut, a, b); c < cost || c == cost && cut > best {
			best, cost = cut, c
		}
	}
	if c := completion(0, n, a, b); c < cost {
		best = 0
	}
	return best, n - best
}

// completion is the time at which the later side is done, in units of one output at rate 1.
func completion(na, nb int, a, b Side) float64 {
	return math.Max(tiles(na, a.Tile)/a.Rate, tiles(nb, b.Tile)/b.Rate)
}

// tiles is n rounded up to whole tiles.
func tiles(n, tile int) float64 { return float64((n + tile - 1) / tile * tile) }
