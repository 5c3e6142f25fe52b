package roofline

import (
	"math"
	"slices"
)

// curve is a figure as a function of the number of PUs, given by points of a profile.
type curve struct {
	x []float64 // ascending
	y []float64
}

// add adds a point and keeps the larger of two values at one x. Of rates that is the less disturbed
// one, of times an upper bound for both sets.
func (c *curve) add(x, y float64) {
	i, found := slices.BinarySearch(c.x, x)
	if found {
		c.y[i] = math.Max(c.y[i], y)
		return
	}
	c.x, c.y = slices.Insert(c.x, i, x), slices.Insert(c.y, i, y)
}

func (c *curve) known() bool { return len(c.x) > 0 }

// at interpolates linearly between two points. Below the first point it is proportional to x,
// beyond the last point constant.
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

// between interpolates on the line through the points i-1 and i.
func (c *curve) between(i int, x float64) float64 {
	share := (x - c.x[i-1]) / (c.x[i] - c.x[i-1])
	return c.y[i-1] + share*(c.y[i]-c.y[i-1])
}

// growing is at for durations: constant below the first point, and with the slope of the last two
// points beyond them.
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

// rise raises each point to the highest before it.
func (c *curve) rise() {
	for i := 1; i < len(c.y); i++ {
		c.y[i] = math.Max(c.y[i], c.y[i-1])
	}
}

// last returns the largest x of a point.
func (c *curve) last() float64 {
	if len(c.x) == 0 {
		return 0
	}
	return c.x[len(c.x)-1]
}
