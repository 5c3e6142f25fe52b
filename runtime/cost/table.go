// Package cost predicts the times of the ops of forwards from times observed in this process. It
// reads no clock: the executor reports the times. The scheduler's quanta, the division of long ops
// and simulated forwards use the same Table, so that their predictions agree.
package cost

import (
	"math/bits"
	"slices"
	"time"

	"sandwich/runtime/phase"
)

// Load is the size of a forward.
type Load struct {
	Rows      int
	Heads     int // rows whose logits are requested
	Positions int // sum over all rows of the positions that each attends to
}

// Span returns the load of n rows after pos earlier positions.
func Span(pos, n int) Load { return Load{Rows: n, Positions: n*pos + n*(n+1)/2} }

// Prior estimates the time of an op before it has run, in seconds: the larger of
// Row*rows + Position*positions and Fixed.
type Prior struct{ Row, Position, Fixed float64 }

// Class describes ops with equal times. Ops of the head process the rows whose logits are
// requested.
type Class struct {
	Name   string
	Prior  [phase.Count]Prior
	Head   bool
	Attend bool // the time depends on the number of positions

	ops     int
	learned [phase.Count][sizes]ratio

	took time.Duration // observed since the last Learn
	seen float64       // number of ops
}

// ratio is the ratio of observed times to the prior.
type ratio struct {
	mean float64 // of recent samples
	n    int
	sum  float64 // weighted sum of all samples
	all  float64 // sum of their weights
}

// sizes is the number of load sizes, in powers of two, with separate ratios.
const sizes = 24

// Table predicts the times of ops of one model on one team of workers. It corrects a prior by the
// observed ratio of ops of the same class and about the same load; for a new load it uses the ratio
// of the nearest observed load. It is not safe for concurrent use.
type Table struct {
	ops     []int // class of each op
	classes []Class
	all     [phase.Count]ratio
	between ratio // in seconds
}

// New returns a table for a forward whose op i has class classes[ops[i]].
func New(classes []Class, ops []int) *Table {
	t := &Table{ops: slices.Clone(ops), classes: slices.Clone(classes)}
	for _, c := range ops {
		t.classes[c].ops++
	}
	return t
}

// Clone returns an independent copy. Later observations of the original do not affect it.
func (t *Table) Clone() *Table {
	c := *t
	c.classes = slices.Clone(t.classes)
	return &c
}

// Whole returns an independent copy that predicts by the averages of all observations instead of
// recent ones. Use it to evaluate a completed run, not to predict the next forward.
func (t *Table) Whole() *Table {
	c := t.Clone()
	for i := range c.classes {
		for of := range c.classes[i].learned {
			for at := range c.classes[i].learned[of] {
				c.classes[i].learned[of][at].settle()
			}
		}
	}
	for i := range c.all {
		c.all[i].settle()
	}
	c.between.settle()
	return c
}

// settle sets the mean to the weighted mean of all samples.
func (r *ratio) settle() {
	if r.all > 0 {
		r.mean = r.sum / r.all
	}
}

// Ops returns the number of ops of a forward.
func (t *Table) Ops() int { return len(t.ops) }

// Op returns the predicted time of an op, given by its index in the forward.
func (t *Table) Op(of phase.Phase, op int, l Load) time.Duration {
	return t.predict(of, &t.classes[t.ops[op]], l)
}

// Forward returns the sum of the predicted times of all ops.
func (t *Table) Forward(of phase.Phase, l Load) (sum time.Duration) {
	for i := range t.classes {
		c := &t.classes[i]
		sum += time.Duration(c.ops) * t.predict(of, c, l)
	}
	return sum
}

func (t *Table) predict(of phase.Phase, c *Class, l Load) time.Duration {
	if c.Head && l.Heads == 0 {
		return 0
	}
	r := c.nearest(of, l)
	if r.n == 0 {
		r = t.all[of]
	}
	if r.n == 0 {
		r = t.all[1-of]
	}
	if r.n == 0 {
		r.mean = 1
	}
	return time.Duration(r.mean * c.prior(of, l) * float64(time.Second))
}

// prior returns the estimate before any observation, in seconds; it is always positive.
func (c *Class) prior(of phase.Phase, l Load) float64 {
	rows := float64(l.Rows)
	if c.Head {
		rows = float64(l.Heads)
	}
	p := c.Prior[of]
	return max(p.Row*rows+p.Position*float64(l.Positions), p.Fixed, 1e-7)
}

// size returns the index of the ratio for a load.
func (c *Class) size(l Load) int {
	n := l.Rows
	switch {
	case c.Head:
		n = l.Heads
	case c.Attend:
		n = l.Positions / max(1, l.Rows)
	}
	return min(sizes-1, bits.Len(uint(max(0, n))))
}

// nearest returns the ratio of the observed load nearest to l, or the zero ratio if there is none.
func (c *Class) nearest(of phase.Phase, l Load) ratio {
	at := c.size(l)
	for d := range sizes {
		for _, i := range [2]int{at - d, at + d} {
			if i >= 0 && i < sizes && c.learned[of][i].n > 0 {
				return c.learned[of][i]
			}
		}
	}
	return ratio{}
}

// ObserveBetween records the time between two forwards that is not part of an op.
func (t *Table) ObserveBetween(d time.Duration) { t.between.add(d.Seconds(), 1) }

// Between returns the recent mean of the times given to ObserveBetween.
func (t *Table) Between() time.Duration { return time.Duration(t.between.mean * float64(time.Second)) }

// Observe records the time of one of `of` equal steps of an op. Learn applies it.
func (t *Table) Observe(op, of int, took time.Duration) {
	c := &t.classes[t.ops[op]]
	c.took += took
	c.seen += 1 / float64(of)
}

// Learn updates the ratios with all observations since the last Learn, which must come from one
// complete or halted forward of load l, and clears the observations.
func (t *Table) Learn(of phase.Phase, l Load) {
	for i := range t.classes {
		c := &t.classes[i]
		if c.seen > 0 {
			prior := c.seen * c.prior(of, l)
			x := c.took.Seconds() / prior
			c.learned[of][c.size(l)].add(x, prior)
			t.all[of].add(x, prior)
		}
		c.took, c.seen = 0, 0
	}
}

// add updates the ratio with a sample. The mean is the average of the first four samples; then each
// sample moves it by a quarter of the difference, limited to a factor of four so that a single
// pause of the machine has little effect. The weight is the amount of work in the sample. It
// affects only the mean of all samples, in which part of an op counts less than a whole forward.
func (r *ratio) add(x, weight float64) {
	const settled, far = 4, 4
	r.sum += weight * x
	r.all += weight
	if r.n >= settled {
		x = min(max(x, r.mean/far), r.mean*far)
	}
	r.n = min(r.n+1, settled)
	r.mean += (x - r.mean) / float64(r.n)
}
