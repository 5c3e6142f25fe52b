// Package cost predicts how long the ops of forwards take from how long they took in this process.
// It is pure: the executor of ops reports their times. A scheduler's quanta, the cuts of long ops
// and simulated forwards rest on one Table, so that two clocks cannot disagree about an op.
package cost

import (
	"math/bits"
	"slices"
	"time"

	"sandwich/runtime/phase"
)

// Load is what a forward works on.
type Load struct {
	Rows      int
	Heads     int // rows whose logits are wanted
	Positions int // that all rows see together
}

// Span is the load of n rows of a sequence behind pos earlier ones.
func Span(pos, n int) Load { return Load{Rows: n, Positions: n*pos + n*(n+1)/2} }

// Prior is what is believed of an op before it ran, in seconds: the larger of
// Row*rows + Position*positions and of Fixed.
type Prior struct{ Row, Position, Fixed float64 }

// Class is ops that take equal times. Those of the head work on the rows whose logits are wanted.
type Class struct {
	Name   string
	Prior  [phase.Count]Prior
	Head   bool
	Attend bool // its time follows the positions

	ops     int
	learned [phase.Count][sizes]ratio

	took time.Duration // observed since the last Learn
	seen float64       // ops
}

// ratio is by how much times differ from the prior.
type ratio struct {
	mean float64 // of late
	n    int
	sum  float64 // of all samples, each times its weight ...
	all  float64 // ... and of the weights
}

// sizes is how many powers of two loads are told apart by.
const sizes = 24

// Table predicts the ops of one model on one team of workers. A prior that is wrong by any factor
// is right once ops of its class ran at about such a load; a load that is new is predicted by the
// nearest one. It is not safe for concurrent use.
type Table struct {
	ops     []int // class of each op
	classes []Class
	all     [phase.Count]ratio
	between ratio // seconds
}

// New returns a table of a forward's ops, each given by the index of its class.
func New(classes []Class, ops []int) *Table {
	t := &Table{ops: slices.Clone(ops), classes: slices.Clone(classes)}
	for _, c := range ops {
		t.classes[c].ops++
	}
	return t
}

// Clone is a copy that learns nothing of what the original sees later.
func (t *Table) Clone() *Table {
	c := *t
	c.classes = slices.Clone(t.classes)
	return &c
}

// Whole is a copy that predicts what ops took on the average of all that it was told, where the
// original predicts what they took of late: for who asks how a run was, not what comes next.
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

// settle makes the mean that of all samples.
func (r *ratio) settle() {
	if r.all > 0 {
		r.mean = r.sum / r.all
	}
}

// Ops is the number of ops of a forward.
func (t *Table) Ops() int { return len(t.ops) }

// Op is the predicted time of an op.
func (t *Table) Op(of phase.Phase, op int, l Load) time.Duration {
	return t.predict(of, &t.classes[t.ops[op]], l)
}

// Forward is the predicted time of all ops.
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

// prior is the time believed at first, in seconds, never 0.
func (c *Class) prior(of phase.Phase, l Load) float64 {
	rows := float64(l.Rows)
	if c.Head {
		rows = float64(l.Heads)
	}
	p := c.Prior[of]
	return max(p.Row*rows+p.Position*float64(l.Positions), p.Fixed, 1e-7)
}

// size is which loads one ratio stands for.
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

// ObserveBetween notes the time between two forwards that none of their ops took.
func (t *Table) ObserveBetween(d time.Duration) { t.between.add(d.Seconds(), 1) }

// Between is the usual time between two forwards.
func (t *Table) Between() time.Duration { return time.Duration(t.between.mean * float64(time.Second)) }

// Observe notes that one of `of` equal steps of an op took so long.
func (t *Table) Observe(op, of int, took time.Duration) {
	c := &t.classes[t.ops[op]]
	c.took += took
	c.seen += 1 / float64(of)
}

// Learn takes in what was observed of a forward, whole or halted, and forgets it.
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

// add moves the mean: by the first samples at once, later by a quarter of the distance, and of a
// sample that is far off only so much that a single pause of the machine does little.
// The weight, which only the mean of all samples heeds, is how much work the sample stands for: a
// piece of an op between two halts says less of all that was done than whole forwards.
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
