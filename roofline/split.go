package roofline

import "math"

// Side is one of the parties that share an operator: how fast it is and how coarse.
type Side struct {
	Rate float64 // outputs a second, or whatever is proportional to it; 0: it takes none
	Tile int     // its kernel's tile along the split dimension, at least 1
}

// Split divides n outputs among sides in the ratio of their rates (SMEPilot equation 1) rounded to
// their tiles, so that the side that finishes last does so as early as it can: side i gets the next
// part[i] outputs, a multiple of its tile but for the last part that is not empty, whose last tile
// may be short and costs a whole one. A side whose part would be less than its tile gets none. part
// is as long as sides; where no side has a rate, the first takes all. exec calls it for each
// product.
func Split(n int, sides []Side, part []int) {
	clear(part)
	low, high := 0.0, math.Inf(1) // times that do not suffice, and that do
	for i := range sides {
		if usable(sides[i].Rate) {
			high = math.Min(high, float64(n+sides[i].Tile)/sides[i].Rate)
		}
	}
	if math.IsInf(high, 1) || n <= 0 {
		part[0] = max(n, 0)
		return
	}
	const steps = 48 // halvings: far below a tile of any machine
	for range steps {
		if t := (low + high) / 2; within(t, n, sides, nil) >= n {
			high = t
		} else {
			low = t
		}
	}
	left := within(high, n, sides, part) - n // beyond what there is
	for i := len(sides) - 1; i >= 0; i-- {
		if tile := sides[i].Tile; left >= tile && part[i] > 0 {
			less := min(left/tile, part[i]/tile) * tile
			part[i] -= less
			left -= less
		}
	}
	for i := len(part) - 1; i >= 0 && left > 0; i-- { // less than any tile: the last one is short
		if part[i] > 0 {
			part[i], left = part[i]-left, 0
		}
	}
}

// usable tells a rate that something can be divided by.
func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// within is how many outputs, n and a tile at most of each side, the sides have done by a time.
func within(t float64, n int, sides []Side, part []int) (done int) {
	for i, s := range sides {
		if !usable(s.Rate) {
			continue
		}
		most := (n + s.Tile - 1) / s.Tile
		tiles := most
		if x := t * s.Rate / float64(s.Tile); x < float64(most) {
			tiles = int(x)
		}
		if done += tiles * s.Tile; part != nil {
			part[i] = tiles * s.Tile
		}
	}
	return done
}
