package roofline

import "math"

// Side is one of the parties that share an operator: how fast it is and how coarse.
type Side struct {
	Rate  float64 // outputs a second, or whatever is proportional to it; 0: it takes none
	Tile  int     // what its parts are multiples of, at least 1: its kernel's tile along the split dimension
	Least int     // and the least of them, where that is more than a tile
}

// Split divides n outputs among sides in the ratio of their rates (SMEPilot equation 1) rounded to
// their tiles, so that the side that finishes last does so as early as it can: side i gets the next
// part[i] outputs, a multiple of its tile but for the last part that is not empty, whose last tile
// may be short and costs a whole one. A side whose part would be less than its tile, or its Least,
// gets none. part is as long as sides; where no side has a rate, the first takes all. exec calls it
// for each product.
func Split(n int, sides []Side, part []int) {
	clear(part)
	for split(n, sides, part); leaveOut(n, sides, part); {
		split(n, sides, part)
	}
	for i := range part {
		part[i] = max(part[i], 0)
	}
}

// leftOut marks a part of nothing.
const leftOut = -1

// leaveOut marks the slowest of the sides whose part is too small for it, another one where that
// would be the fastest of all, and empties the parts of the rest; false where no part is too small.
func leaveOut(n int, sides []Side, part []int) bool {
	fastest, slowest, small := 0, -1, false
	for i := range sides {
		if part[i] > 0 && (part[fastest] <= 0 || sides[i].Rate > sides[fastest].Rate) {
			fastest = i
		}
		small = small || part[i] > 0 && part[i] < min(sides[i].Least, n)
	}
	if !small {
		return false
	}
	for i := range sides {
		if i == fastest || part[i] <= 0 {
			continue
		}
		mine, theirs := part[i] < sides[i].Least, slowest >= 0 && part[slowest] < sides[slowest].Least
		if slowest < 0 || mine && !theirs || mine == theirs && sides[i].Rate < sides[slowest].Rate {
			slowest = i
		}
	}
	part[slowest] = leftOut
	for i := range part {
		part[i] = min(part[i], 0)
	}
	return true
}

// split is Split among the sides that are not left out, whatever their Least.
func split(n int, sides []Side, part []int) {
	low, high := 0.0, math.Inf(1) // times that do not suffice, and that do
	for i := range sides {
		if sides[i].takes(part[i]) {
			high = math.Min(high, float64(n+sides[i].Tile)/sides[i].Rate)
		}
	}
	if math.IsInf(high, 1) || n <= 0 {
		part[0] = max(n, 0)
		return
	}
	const steps = 48 // halvings: far below a tile of any machine
	for range steps {
		if t := (low + high) / 2; within(t, n, sides, part, false) >= n {
			high = t
		} else {
			low = t
		}
	}
	left := within(high, n, sides, part, true) - n // beyond what there is
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

// takes says that a side is one to divide among.
func (s *Side) takes(part int) bool { return part != leftOut && usable(s.Rate) }

// End is when the last of the sides is done with its part of a division.
func End(sides []Side, part []int) (last float64) {
	for i := range sides {
		if part[i] > 0 {
			last = math.Max(last, float64(part[i])/sides[i].Rate)
		}
	}
	return last
}

// EndInChunks is when n outputs are done that are handed out in equal chunks, each to the side that
// is free first: what a division has to beat. It is infinite where no side has a rate.
func EndInChunks(n, chunks int, sides []Side) (last float64) {
	low, high := 0.0, math.Inf(1) // times before and from which all chunks are begun
	for i := range sides {
		if usable(sides[i].Rate) {
			high = math.Min(high, float64(n)/sides[i].Rate)
		}
	}
	if chunks <= 0 || math.IsInf(high, 1) {
		return math.Inf(1)
	}
	each := float64(n) / float64(chunks)
	const steps = 48
	for range steps {
		if t := (low + high) / 2; begunBy(t, each, sides) >= chunks {
			high = t
		} else {
			low = t
		}
	}
	next := math.Inf(1) // end of the last one to be begun
	for i := range sides {
		if r := sides[i].Rate; usable(r) {
			k := math.Floor(low*r/each) + 1
			last = math.Max(last, k*each/r)
			if k*each/r <= high*(1+1e-9) {
				next = math.Min(next, (k+1)*each/r)
			}
		}
	}
	if begunBy(0, each, sides) < chunks {
		last = math.Max(last, next)
	}
	return last
}

// begunBy is how many chunks of so many outputs the sides have begun by a time.
func begunBy(t, each float64, sides []Side) (n int) {
	for i := range sides {
		if r := sides[i].Rate; usable(r) {
			n += int(t*r/each) + 1
		}
	}
	return n
}

// usable tells a rate that something can be divided by.
func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// within is how many outputs, n and a tile at most of each side, the sides have done by a time, and
// their parts then, where they are asked for.
func within(t float64, n int, sides []Side, part []int, parts bool) (done int) {
	for i := range sides {
		s := &sides[i]
		if !s.takes(part[i]) {
			continue
		}
		most := (n + s.Tile - 1) / s.Tile
		tiles := most
		if x := t * s.Rate / float64(s.Tile); x < float64(most) {
			tiles = int(x)
		}
		if done += tiles * s.Tile; parts {
			part[i] = tiles * s.Tile
		}
	}
	return done
}
