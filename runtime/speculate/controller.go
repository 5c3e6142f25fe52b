package speculate

import (
	"math"

	"sandwich/runtime/sched"
)

// Bounds of a Controller.
const (
	// minGain is the smallest ratio of expected speeds, with and without drafts, for which
	// tokens are drafted.
	minGain = 1.02

	// exploreShare is the part of the recent time that may be spent on drafts that are not expected
	// to pay, which keep the estimates current. It stays below the bound of 1 % because costs are
	// estimates.
	exploreShare = 0.005

	// maxExploring bounds the time saved for exploration, in steps.
	maxExploring = 1.0

	// minExploreCost is the smallest cost of an exploring token, as a part of a step.
	minExploreCost = 0.02
)

// Controller decides how many drafted tokens the sequences of a decode batch contribute. It learns
// the time of steps and the acceptance of drafts. It is not safe for concurrent use.
type Controller struct {
	times   *stepTimes
	rows    int // maximum rows of a step
	depth   int // fixed number of tokens; 0: by expected gain; negative: none
	again   bool
	classes [Classes]estimate
	saved   float64 // time that exploration may use, in seconds
	values  []value
	took    []float64 // expected times of steps by rows - 1, in a decision
}

// value is one more drafted token of a batch.
type value struct {
	at     int     // index of the sequence
	chance float64 // that it is accepted
	wasted float64 // time of the batch with it, less the time that its tokens take at the best speed
}

// NewController returns a controller for steps of up to as many rows as the curves have. The curves
// are the expected times of steps for at least one context length, ascending; measured steps
// replace them. If depth is above 0, each sequence contributes up to depth drafted tokens, whatever
// their cost. again reports whether the accepted tokens of a draft that is rejected in part must be
// recomputed.
func NewController(curves []Curve, depth int, again bool) *Controller {
	times := newStepTimes(curves)
	return &Controller{times: times, rows: times.rows(), depth: depth, again: again}
}

// Chance estimates the probability that a drafted token of a class is accepted if those before it
// were.
func (c *Controller) Chance(a *Acceptance, class int) float64 {
	return a.own[class].chance(c.classes[class].chance(0.5, firstTries), textTries)
}

// SetDepth changes the depth; see NewController. A negative depth drafts nothing.
func (c *Controller) SetDepth(depth int) { c.depth = depth }

// Rows returns the most rows of a step.
func (c *Controller) Rows() int { return c.rows }

// Verified records that a step compared tried tokens of a draft with drawn ones, of which the first
// `accepted` were right. Drafts of a fixed depth do not count.
func (c *Controller) Verified(a *Acceptance, class, tried, accepted int) {
	if c.depth != 0 {
		return
	}
	c.classes[class].add(tried, accepted, classMemory)
	a.own[class].add(tried, accepted, textMemory)
}

// Stepped records the time in seconds of a decode step of a number of rows that attended to a total
// number of positions.
func (c *Controller) Stepped(rows, positions int, seconds float64) {
	c.times.observe(rows, positions/max(1, rows), seconds)
	c.saved = min(c.saved+exploreShare*seconds, maxExploring*seconds)
}

// Allot sets the rows of each draft of a decode batch: as many as make the batch produce the most
// tokens per time, of the free rows that the policy grants. Tokens that are certain come first.
// One more may be drafted than pays, to learn its acceptance and the time of more rows.
func (c *Controller) Allot(drafts []sched.Draft, free int) {
	rows, positions := len(drafts), 0
	free = min(free, c.rows-rows)
	for i := range drafts {
		d := &drafts[i]
		d.Rows = max(0, min(d.Certain, free))
		rows, free, positions = rows+d.Rows, free-d.Rows, positions+d.Known
	}
	switch {
	case free <= 0:
	case c.depth != 0:
		c.allotDepth(drafts, free)
	default:
		c.allotByGain(drafts, rows, free, positions/max(1, len(drafts)))
	}
}

// allotByGain gives drafted tokens those of the free rows that increase the expected speed most. It
// drafts nothing before steps without drafts were measured, and uses at most the rows of
// stepTimes.maxRows, so that a wrong prediction costs little.
func (c *Controller) allotByGain(drafts []sched.Draft, rows, free, context int) {
	if !c.times.measured(rows, context) {
		return
	}
	free = min(free, c.times.maxRows(context)-rows)
	c.took = c.times.fitted(c.took[:0], context)
	plain := float64(rows) / c.took[rows-1]
	best, speed, added, expected := plain, minGain*plain, 0, float64(rows)
	repeated := 0.0 // rows of later steps that compute accepted tokens again
	c.values = c.values[:0]
	for n := 1; n <= free; n++ {
		v, ok := nextValue(drafts)
		if !ok {
			break
		}
		drafts[v.at].Rows++
		expected += v.chance
		took := c.took[rows+n-1]
		if c.again {
			repeated += c.repeated(&drafts[v.at], v.chance)
			took += repeated * (took - float64(rows)/plain) / float64(n)
		}
		v.wasted = took - expected/best
		c.values = append(c.values, v)
		if now := expected / took; now > speed {
			best, speed, added = now, now, n
		}
	}
	if added < len(c.values) && c.explores(c.values[added].wasted, float64(rows)/plain) {
		added++
	}
	for _, v := range c.values[added:] {
		drafts[v.at].Rows--
	}
}

// repeated returns how many more accepted tokens are expected to be computed again because the last
// token joined a draft. chance is the probability that the whole draft is accepted.
func (c *Controller) repeated(d *sched.Draft, chance float64) float64 {
	if d.Chance == 0 {
		return 0
	}
	return float64(d.Rows-1) * (chance/d.Chance - chance)
}

// nextValue returns the drafted token that is most likely to be accepted of those without a row.
func nextValue(drafts []sched.Draft) (best value, ok bool) {
	for i := range drafts {
		d := &drafts[i]
		if d.Rows >= d.Tokens || d.Rows < d.Certain {
			continue
		}
		p := math.Pow(d.Chance, float64(d.Rows-d.Certain+1))
		if !ok || p > best.chance {
			best, ok = value{at: i, chance: p}, true
		}
	}
	return best, ok
}

// explores reports whether the time saved for exploration pays for a drafted token that wastes some
// time, and takes it if so. step is the time of a step without drafts.
func (c *Controller) explores(wasted, step float64) bool {
	cost := max(wasted, minExploreCost*step)
	if cost > c.saved {
		return false
	}
	c.saved -= cost
	return true
}

// allotDepth gives each draft up to the fixed number of rows.
func (c *Controller) allotDepth(drafts []sched.Draft, free int) {
	for i := range drafts {
		d := &drafts[i]
		n := max(0, min(d.Tokens-d.Rows, c.depth, free))
		d.Rows, free = d.Rows+n, free-n
	}
}
