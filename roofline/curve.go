package roofline

import (
	"math"
	"slices"
)

// curve is a figure over a number of PUs, from the points that a profile holds.
type curve struct {
	x []float64 // ascending
	y []float64
}

// add keeps the larger of two figures of one x: of rates since what else runs on a machine never
// speeds it up, of times since the farther of two sets of one size bounds both.
func (c *curve) add(x, y float64) {
	i, found := slices.BinarySearch(c.x, x)
	if found {
		c.y[i] = math.Max(c.y[i], y)
		return
	}
	c.x, c.y = slices.Insert(c.x, i, x), slices.Insert(c.y, i, y)
}

func (c *curve) known() bool { return len(c.x) > 0 }

// at is linear between two points, which is exact for compute and near for bandwidth; below the
// first point proportional to x; beyond the last point flat, since nothing says that more PUs are
// faster.
func (c *curve) at(x float64) float64 {
	if len(c.x) == 0 || x <= 0 {
		return 0
	}
	i, found := slices.BinarySearch(c.x, x)
	switch {
	case found:
		return c.y[i]
	case i == 0:
		return c.y[0] * x / c.x[0]
	case i == len(c.x):
		return c.y[i-1]
	}
	return c.between(i, x)
}

// between is on the line through the points i-1 and i.
func (c *curve) between(i int, x float64) float64 {
	share := (x - c.x[i-1]) / (c.x[i] - c.x[i-1])
	return c.y[i-1] + share*(c.y[i]-c.y[i-1])
}

// growing is at, but it keeps the slope of the last two points beyond them and the first point
// below it: for times, which start at some latency and go on growing.
func (c *curve) growing(x float64) float64 {
	switch n := len(c.x); {
	case n == 0:
		return 0
	case x <= c.x[0]:
		return c.y[0]
	case n > 1 && x > c.x[n-1]:
		return math.Max(c.y[n-1], c.between(n-1, x))
	}
	return c.at(x)
}

// rise lifts each point to the highest before it.
func (c *curve) rise() {
	for i := 1; i < len(c.y); i++ {
		c.y[i] = math.Max(c.y[i], c.y[i-1])
	}
}

// last is the largest x of a point.
func (c *curve) last() float64 {
	if len(c.x) == 0 {
		return 0
	}
	return c.x[len(c.x)-1]
}
