package roofline

import "math"

// Side is a participant in an operator, with its speed and granularity.
type Side struct {
	Rate  float64 // outputs per second, or a value proportional to it; 0: gets no part
	Tile  int     // granularity of its part, at least 1: its kernel's tile along the split dimension
	Least int     // minimum part if larger than a tile
}

// Split divides n outputs among sides in the ratio of their rates (SMEPilot equation 1), rounded to
// their tiles so that the last side finishes as early as possible. Side i gets the next part[i]
// outputs, a multiple of its tile; only the last nonempty part may end with a short tile, which
// costs a whole one. A side whose part would be less than its tile or its Least gets none. part
// must be as long as sides. If no side has a rate, the first one gets all. exec calls Split for
// each product, so it does not allocate.
func Split(n int, sides []Side, part []int) {
	clear(part)
	for split(n, sides, part); leaveOut(n, sides, part); {
		split(n, sides, part)
	}
	for i := range part {
		part[i] = max(part[i], 0)
	}
}

// leftOut marks a side that gets no part.
const leftOut = -1

// leaveOut marks the slowest of the sides whose part is too small, or another side if that is the
// fastest of all, and clears the other parts. It returns false if no part is too small.
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

// split divides n among the sides that are not left out, ignoring Least.
func split(n int, sides []Side, part []int) {
	low, high := 0.0, math.Inf(1) // durations that are too short and long enough
	for i := range sides {
		if sides[i].takes(part[i]) {
			high = math.Min(high, float64(n+sides[i].Tile)/sides[i].Rate)
		}
	}
	if math.IsInf(high, 1) || n <= 0 {
		part[0] = max(n, 0)
		return
	}
	const steps = 48 // bisections, enough for any tile
	for range steps {
		if t := (low + high) / 2; within(t, n, sides, part, false) >= n {
			high = t
		} else {
			low = t
		}
	}
	left := within(high, n, sides, part, true) - n // excess over n
	for i := len(sides) - 1; i >= 0; i-- {
		if tile := sides[i].Tile; left >= tile && part[i] > 0 {
			less := min(left/tile, part[i]/tile) * tile
			part[i] -= less
			left -= less
		}
	}
	for i := len(part) - 1; i >= 0 && left > 0; i-- { // the last tile is short
		if part[i] > 0 {
			part[i], left = part[i]-left, 0
		}
	}
}

// takes reports whether a side gets a part.
func (s *Side) takes(part int) bool { return part != leftOut && usable(s.Rate) }

// End returns the time at which the last side finishes its part.
func End(sides []Side, part []int) (last float64) {
	for i := range sides {
		if part[i] > 0 {
			last = math.Max(last, float64(part[i])/sides[i].Rate)
		}
	}
	return last
}

// EndInChunks returns the time at which n outputs are finished if the first free side takes the
// next of equal chunks, for comparison with End. It is infinite if no side has a rate.
func EndInChunks(n, chunks int, sides []Side) (last float64) {
	low, high := 0.0, math.Inf(1) // bounds of the time at which the last chunk starts
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
	next := math.Inf(1) // end of the chunk that starts last
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

// begunBy returns how many chunks the sides have started by time t.
func begunBy(t, each float64, sides []Side) (n int) {
	for i := range sides {
		if r := sides[i].Rate; usable(r) {
			n += int(t*r/each) + 1
		}
	}
	return n
}

// usable reports whether a rate is positive and finite.
func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// within returns how many outputs the sides have finished by time t, each at most n rounded up to
// its tile. With parts it stores their parts.
func within(t float64, n int, sides []Side, part []int, parts bool) (done int) {
	for i := range sides {
		s := &sides[i]
		if !s.takes(part[i]) {
			continue
		}
		limit := (n + s.Tile - 1) / s.Tile
		tiles := limit
		if x := t * s.Rate / float64(s.Tile); x < float64(limit) {
			tiles = int(x)
		}
		if done += tiles * s.Tile; parts {
			part[i] = tiles * s.Tile
		}
	}
	return done
}
