package trace

import (
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
)

// Cost says how long forwards take.
type Cost interface {
	// Prefill is the time of n rows of one sequence that follow pos earlier ones; head says that the logits of the last row are computed.
	Prefill(pos, n int, head bool) time.Duration
	// Decode is the time of one row of each of several sequences, each with as many positions before it.
	Decode(context []int) time.Duration
	// Ops is how many boundaries a forward has at which a prefill can be stopped.
	Ops() int
}

// RoofCost predicts forwards from the ceilings of a profile (DESIGN tuner step 2): every operator at its roof, times how near to the roof kernels come.
type RoofCost struct {
	shape   plans.ModelShape
	kvBits  float64
	phases  [2]roofline.Roof // prefill, decode
	barrier float64          // seconds between operators
	near    float64
}

// What a forward loses beside its roof. Assumed: a barrier of some threads, and the share of the roof that the default schedules reach.
const (
	assumedBarrier = 2e-6
	assumedNear    = 0.8
	opsPerLayer    = 9
)

// NewRoofCost is the cost of a model under a plan's service configuration on the machine of a profile. It fails where the profile lacks a ceiling.
func NewRoofCost(p *profiles.Profile, plan *plans.Plan) (*RoofCost, error) {
	c := &RoofCost{shape: plan.Model, kvBits: 8 * float64(plan.Model.KVBytesPerToken(plan.KV)) / float64(max(1, 2*plan.Model.Layers*plan.Model.KVHeads*plan.Model.HeadDim)),
		barrier: assumedBarrier, near: assumedNear}
	isa, typ := widest(plan)
	for i, pus := range []plans.PUSet{plan.Service.PrefillPUs, plan.Service.DecodePUs} {
		r, err := roofline.FromProfile(p, isa, typ, len(pus))
		if err != nil {
			return nil, fmt.Errorf("predicting forwards: %w", err)
		}
		r.Targets = r.Targets[:1] // the runtime serves on the cores
		c.phases[i] = r
	}
	return c, nil
}

// widest is the instruction set and the data type of most of the arithmetic of a plan.
func widest(plan *plans.Plan) (isa, typ string) {
	isa = "go"
	best := -1
	specs := plan.Kernels()
	for i := range specs {
		if best < 0 || specs[i].ISA > specs[best].ISA {
			best, isa = i, specs[i].ISA.String()
		}
	}
	return isa, plan.Arithmetic()
}

// Ops implements Cost.
func (c *RoofCost) Ops() int { return opsPerLayer*c.shape.Layers + 3 }

// Prefill implements Cost.
func (c *RoofCost) Prefill(pos, n int, head bool) time.Duration {
	heads := 0
	if head {
		heads = 1
	}
	t := c.weights(c.phases[0], n, heads)
	t += float64(c.shape.Layers) * c.at(c.phases[0], roofline.Attention(n, pos+n, c.shape.Heads, c.shape.KVHeads, c.shape.HeadDim, c.kvBits, true))
	return c.total(t)
}

// Decode implements Cost.
func (c *RoofCost) Decode(context []int) time.Duration {
	t := c.weights(c.phases[1], len(context), len(context))
	for _, pos := range context {
		t += float64(c.shape.Layers) * c.at(c.phases[1], roofline.Attention(1, pos+1, c.shape.Heads, c.shape.KVHeads, c.shape.HeadDim, c.kvBits, true))
	}
	return c.total(t)
}

// weights is the time of all products with rows rows, of which heads reach the output head.
func (c *RoofCost) weights(r roofline.Roof, rows, heads int) float64 {
	sum := 0.0
	for _, w := range c.shape.Weights {
		m := rows
		switch w.Role {
		case plans.RoleEmbed:
			continue
		case "head":
			m = heads
		}
		if m > 0 {
			sum += float64(w.Count) * c.at(r, roofline.MatMul(m, w.N, w.K, roofline.Bits(w.Type)))
		}
	}
	return sum
}

func (c *RoofCost) at(r roofline.Roof, w roofline.Work) float64 {
	return r.Seconds(r.Targets[0], w) / c.near
}

func (c *RoofCost) total(seconds float64) time.Duration {
	return time.Duration((seconds + float64(c.Ops())*c.barrier) * float64(time.Second))
}
