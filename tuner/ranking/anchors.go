package ranking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/search"
)

// Rows of the three anchors of a weight type: the first is bound by reading, the second by
// unpacking weights for few rows, the third by multiplying. The other rows are those of products
// that check the predictions.
var (
	anchorRows = [3]int{1, 32, 512}
	heldRows   = []int{1, 16, 128}
)

// errNoTime stops the measurements when their time is over. The calibration keeps the results so
// far.
var errNoTime = errors.New("the time for anchors is over")

// Anchors times three products of each weight type of a model on all PUs of its default plan, then
// other products to check the predictions, for about the duration within. The profile must be of
// this machine.
func Anchors(ctx context.Context, o Options, within time.Duration) (*Calibration, error) {
	return anchors(ctx, o, within, max(minAnchor, min(maxAnchor, within/anchorParts)))
}

// anchors is Anchors with a minimum duration of each product.
func anchors(ctx context.Context, o Options, within, minimum time.Duration) (*Calibration, error) {
	plan, profile, _, err := o.untuned()
	if err != nil {
		return nil, err
	}
	predictor, err := candidates.NewPredictor(profile, plan, o.Model, candidates.Options{})
	if err != nil {
		return nil, err
	}
	c := &calibration{plan: plan, predictor: predictor, pus: plan.Prefill.PUs,
		min: minimum, out: &Calibration{Types: map[string]roofline.Efficiency{}}}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errNoTime)
	defer cancel()
	if err := c.measure(ctx, o); err != nil && !errors.Is(err, errNoTime) {
		return nil, err
	}
	c.estimate()
	if c.out.known() { // on an idle machine
		if err := c.attention(ctx, o); err != nil && !errors.Is(err, errNoTime) {
			return nil, err
		}
	}
	return c.out, nil
}

// calibration is the state of one call of Anchors.
type calibration struct {
	plan      *plans.Plan
	predictor *candidates.Predictor
	pus       topotree.CPUSet
	took      []kernels.ProductTime
	alone     []kernels.ProductTime // the first anchors on the first PU alone
	min       time.Duration         // minimum duration of each product
	out       *Calibration
}

// Each product gets a part of the time of all. Much shorter samples are too noisy for the
// multiplying anchors.
const (
	minAnchor   = 10 * time.Millisecond
	maxAnchor   = 300 * time.Millisecond
	anchorParts = 30
)

// measure times the anchors of every type first, then the other products.
func (c *calibration) measure(ctx context.Context, o Options) error {
	var anchors, others []plans.Table
	seen := map[string]bool{}
	for _, t := range c.byBytes() {
		if !seen[t.Type] {
			seen[t.Type] = true
			anchors = append(anchors, t)
			continue
		}
		others = append(others, t)
	}
	all := c.plan.Prefill.PUs
	for _, stage := range []struct {
		pus    topotree.CPUSet
		tables []plans.Table
		rows   []int
		to     *[]kernels.ProductTime
	}{
		{all, anchors, append(slices.Clone(anchorRows[:]), heldRows[1:]...), &c.took},
		{c.one(), anchors, anchorRows[:1], &c.alone},
		{all, others, heldRows, &c.took},
	} {
		if len(stage.tables) == 0 || stage.pus.IsEmpty() {
			continue
		}
		plan := *c.plan
		plan.Prefill.PUs, plan.Prefill.Tables, plan.Classes = stage.pus, stage.tables, nil
		po := kernels.ProductOptions{Plan: &plan, Rows: stage.rows, Cold: true, Least: c.min,
			Round: int(min(anchorRound, kernels.ColdBytes(o.Profile, all))), Seed: 1}
		err := kernels.TimeProducts(ctx, po, func(t kernels.ProductTime) { *stage.to = append(*stage.to, t) })
		if err != nil {
			return err
		}
	}
	return nil
}

// one returns the PU on which anchors of a single PU are measured, or none if there is only one.
func (c *calibration) one() topotree.CPUSet {
	if c.plan.Prefill.PUs.Count() < 2 {
		return topotree.CPUSet{}
	}
	return topotree.NewCPUSet(c.plan.Prefill.PUs.First())
}

// reachAlone returns the fraction that a memory-bound anchor of one PU shows for single PUs.
func (c *calibration) reachAlone(compute string, near roofline.Efficiency, memory roofline.Anchor) float64 {
	if memory.Seconds <= 0 || c.one().IsEmpty() {
		return 0
	}
	return roofline.FitAlone(c.predictor.Pace(compute, c.one()), near, memory)
}

// sayAlone returns a part of a sentence, or "" if no anchor was measured on one PU.
func (c *calibration) sayAlone(near roofline.Efficiency) string {
	if near.Alone <= 0 {
		return ""
	}
	return fmt.Sprintf(" (PU %d alone: %.0f %%)", c.one().First(), 100*near.Alone)
}

// find returns the seconds of a product, or 0 if it was not measured.
func find(list []kernels.ProductTime, key plans.WeightKey, m int) float64 {
	for _, t := range list {
		if t.Key == key && t.M == m {
			return search.Sample{Seconds: t.Seconds}.Fast() // disturbances only slow a call down
		}
	}
	return 0
}

// believed is the median error of predictions up to which anchors are kept even if the assumed
// figures happen to predict better. Equal products differ by as much from second to second.
const believed = 0.15

// anchorRound bounds the bytes of weights through which products cycle.
const anchorRound = 256 << 20

// byBytes returns the tables of prefill: layer weights of which trials hold all, the largest first,
// and heads last, because they rarely compute many rows.
func (c *calibration) byBytes() []plans.Table {
	out := slices.DeleteFunc(slices.Clone(c.plan.Prefill.Tables), func(t plans.Table) bool {
		return t.Class != "" || kernels.PackedBytes(t.WeightKey) > kernels.MaxCopy
	})
	heads := map[plans.WeightKey]int{}
	for _, w := range c.plan.Model.Weights {
		if heads[w.Key()] = 1; w.Role != plans.RoleEmbed && w.Role != "head" {
			heads[w.Key()] = 0
		}
	}
	slices.SortStableFunc(out, func(a, b plans.Table) int {
		return cmp.Or(heads[a.WeightKey]-heads[b.WeightKey],
			kernels.PackedBytes(b.WeightKey)-kernels.PackedBytes(a.WeightKey))
	})
	return out
}

// estimate derives ceilings from the anchors and checks predictions against the other products.
func (c *calibration) estimate() {
	used := map[plans.WeightKey]bool{}
	for _, t := range c.took {
		if _, done := c.out.Types[t.Key.Type]; done || t.M != anchorRows[2] {
			continue
		}
		var anchors [3]roofline.Anchor
		for i, m := range anchorRows {
			anchors[i] = roofline.Anchor{Step: c.predictor.ProductStep(m, t.Key), Seconds: find(c.took, t.Key, m)}
		}
		pace := c.predictor.Pace(t.Compute.Ceiling(), c.pus)
		near, err := roofline.FitEfficiency(pace, anchors[0], anchors[1], anchors[2])
		if err != nil {
			continue
		}
		near.Alone = c.reachAlone(t.Compute.Ceiling(), near, roofline.Anchor{Step: anchors[0].Step,
			Seconds: find(c.alone, t.Key, anchorRows[0])})
		used[t.Key], c.out.Types[t.Key.Type] = true, near
		c.out.Measured = append(c.out.Measured, fmt.Sprintf("products of %s reach %.0f %% of what PUs %s read%s with "+
			"one row and %.0f %% of their %s peak with %d (%s)", t.Key.Type, 100*near.Read, c.pus, c.sayAlone(near),
			100*near.Peak, t.Compute.Ceiling(), anchorRows[2], strings.TrimSuffix(t.Key.String(), ":"+t.Key.Type)))
	}
	assumed := c.errors(used)
	c.predictor.Calibrate(c.out.Types)
	c.out.Errors = c.errors(used)
	with, without := c.out.Error(), (&Calibration{Errors: assumed}).Error()
	if with != nil && with.Median > max(believed, without.Median) { // the machine was busy
		c.out.Types, c.out.Errors = nil, assumed
		c.out.Measured = []string{fmt.Sprintf("anchors were measured and rejected: with them predictions are "+
			"off by %.0f %% at the median, with what is assumed by %.0f %%", 100*with.Median, 100*without.Median)}
	}
}

// errors returns the errors of predictions of the products that are not anchors.
func (c *calibration) errors(used map[plans.WeightKey]bool) (out []float64) {
	for _, t := range c.took {
		_, known := c.out.Types[t.Key.Type]
		if !known || used[t.Key] && slices.Contains(anchorRows[:], t.M) {
			continue
		}
		real := find(c.took, t.Key, t.M)
		out = append(out, math.Abs(c.predictor.Product(t.M, t.Key, t.Compute.Ceiling(), c.pus)/real-1))
	}
	slices.Sort(out)
	return out
}
