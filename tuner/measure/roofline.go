package measure

import (
	"math"
	"slices"

	"sandwich/roofline"
	"sandwich/runtime/model/cost"
	"sandwich/topotree"
	"sandwich/tuner/measure/spread"
)

// RooflineRow is one op of a forward: its bound, its predicted and its measured duration. Its JSON
// is stable.
type RooflineRow struct {
	Op      string `json:"op"` // its name without the layer
	M       int    `json:"M"`
	Phase   string `json:"phase"`
	Context int    `json:"context"` // positions before the rows of each sequence
	Count   int    `json:"count"`   // number of layers with equal ops
	ISA     string `json:"isa"`
	PUs     string `json:"pus"`
	Type    string `json:"type,omitempty"` // of the weights
	Compute string `json:"compute"`

	FLOP      float64 `json:"flop"` // of one op
	Bytes     float64 `json:"bytes"`
	Intensity float64 `json:"intensity"` // FLOP per byte; 0 if it reads no memory
	Regime    string  `json:"regime"`
	Target    string  `json:"target"`
	Split     string  `json:"split,omitempty"`
	Ceiling   float64 `json:"ceiling_s"`           // at the ceiling
	Predicted float64 `json:"predicted_s"`         // from the anchors
	Without   float64 `json:"without_s,omitempty"` // at the ceiling, without the removed mechanism

	Seconds float64 `json:"measured_s,omitempty"` // median; absent if not measured
	Min     float64 `json:"min_s,omitempty"`
	Max     float64 `json:"max_s,omitempty"`
	Samples int     `json:"samples,omitempty"`
	Error   float64 `json:"error,omitempty"` // of the prediction, relative: 0.1 is 10 % too long

	Model string `json:"model"`
	CPU   string `json:"cpu"`
}

// GFLOPS returns the measured rate, or the predicted one without a measurement.
func (r *RooflineRow) GFLOPS() float64 {
	if r.Seconds > 0 {
		return r.FLOP / r.Seconds / 1e9
	}
	return r.FLOP / r.Predicted / 1e9
}

// RooflineOptions configure which forwards are predicted and measured.
type RooflineOptions struct {
	// Rows are the rows of forwards: decoding sequences up to BatchMax of the plan, otherwise one
	// prompt.
	Rows    []int
	Reps    int
	Placer  cost.Placer         // with the model, the plan and the machine
	Assumed roofline.Efficiency // fraction of the ceilings that ops reach without an anchor
	Without *cost.Placer        // places ops without a mechanism; may be nil
	Step    func()              // called after each forward
}

// Phase returns the phase of a forward of m rows.
func (o *RooflineOptions) Phase(m int) string {
	if m <= o.Placer.Plan.BatchMax {
		return cost.Phases[1]
	}
	return cost.Phases[0]
}

// forward returns the forward of m rows.
func (o *RooflineOptions) forward(m int) Forward {
	return Forward{o.Phase(m) == cost.Phases[0], m, o.Placer.Context}
}

// forwards returns the predicted forwards and their anchors.
func (o *RooflineOptions) forwards() (out []Forward) {
	for _, m := range slices.Concat(o.Rows, o.anchors()) {
		out = append(out, o.forward(m))
	}
	return out
}

// Positions returns the maximum number of KV positions of a forward, over all sequences.
func (o *RooflineOptions) Positions() int { return ForwardPositions(o.forwards()) }

// LogitRows returns the maximum number of rows of a forward with logits.
func (o *RooflineOptions) LogitRows() int { return ForwardLogits(o.forwards()) }

// Predict returns the bound and the duration of every op of the forwards, on a machine without
// anchors.
func (o *RooflineOptions) Predict() (rows []RooflineRow, err error) {
	for _, m := range o.Rows {
		list, _, err := o.predict(m, nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, list...)
	}
	return rows, nil
}

// predict predicts one forward by anchors. It also returns the row index of each op of the model.
func (o *RooflineOptions) predict(m int, by *anchors) (rows []RooflineRow, at []int, err error) {
	p := &o.Placer
	phase := o.Phase(m)
	works, at, placed, err := p.Place(phase, m)
	if err != nil {
		return nil, nil, err
	}
	without := placed
	if o.Without != nil {
		if without, err = o.Without.At(phase, m); err != nil {
			return nil, nil, err
		}
	}
	set, next := o.pus(phase), 0
	wait := p.Machine.Barrier(set).Value
	for i := range works {
		w := &works[i]
		r := RooflineRow{Op: w.Op, M: m, Phase: phase, Context: p.Context, Count: w.Count, ISA: p.Plan.Widest(),
			PUs: set.String(), Predicted: wait}
		op := slices.Index(at, i)
		for k, part := range w.Parts {
			at := &placed[next]
			if o.Without != nil {
				r.Without += without[next].Seconds
			}
			next++
			r.FLOP, r.Bytes, r.Ceiling = r.FLOP+part.FLOP, r.Bytes+part.Bytes, r.Ceiling+at.Seconds
			near := by.near(op, part.Type, o.Assumed)
			if at.Units {
				r.Predicted += at.Seconds / near.Peak
			} else {
				r.Predicted += o.pace(set, at.Compute).Seconds(part.Step, near)
			}
			if k == 0 {
				r.Type, r.Compute, r.Regime, r.Target, r.Split = part.Type, at.Compute, at.Regime, at.Target, at.Split
			}
		}
		if seconds, known := by.moving(op, phase, m); known {
			r.Predicted = seconds
		}
		if r.Bytes > 0 {
			r.Intensity = r.FLOP / r.Bytes
		}
		rows = append(rows, r)
	}
	return rows, at, nil
}

// pus returns the PUs of a phase.
func (o *RooflineOptions) pus(phase string) topotree.CPUSet {
	if phase == cost.Phases[1] {
		return o.Placer.Plan.Decode.PUs
	}
	return o.Placer.Plan.Prefill.PUs
}

// pace returns the bounds of ops on some PUs in an arithmetic.
func (o *RooflineOptions) pace(set topotree.CPUSet, compute string) roofline.Limits {
	return o.Placer.Machine.Limits(set, roofline.Path{ISA: o.Placer.Plan.Widest(), Type: compute})
}

func (r *RooflineRow) measured(samples []float64) {
	sp := spread.Summarize(samples)
	r.Seconds, r.Min, r.Max, r.Samples = sp.Median, sp.Min, sp.Max, len(samples)
	if r.Seconds > 0 {
		r.Error = r.Predicted/r.Seconds - 1
	}
}

// RooflineErrors are the errors of predictions.
type RooflineErrors struct {
	Ops    int     `json:"ops"` // that take at least Least
	Least  float64 `json:"least_s"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	// Cases counts ops of two instruction sets whose measured times differ by more than a tenth.
	// Right counts those whose faster one was predicted.
	Cases int `json:"cases,omitempty"`
	Right int `json:"right,omitempty"`
}

// ErrorsOf returns the errors of ops that take at least minimum seconds.
func ErrorsOf(rows []RooflineRow, minimum float64) RooflineErrors {
	e := RooflineErrors{Least: minimum}
	var off []float64
	for i := range rows {
		r := &rows[i]
		if r.Seconds < minimum || r.Seconds == 0 {
			continue
		}
		off = append(off, math.Abs(r.Error))
		for k := range rows[:i] {
			if o := &rows[k]; o.Op == r.Op && o.M == r.M && o.Type == r.Type && o.ISA != r.ISA && o.Seconds > 0 &&
				math.Abs(o.Seconds-r.Seconds) > 0.1*math.Min(o.Seconds, r.Seconds) {
				e.Cases++
				if (o.Seconds < r.Seconds) == (o.Predicted < r.Predicted) {
					e.Right++
				}
			}
		}
	}
	if e.Ops = len(off); e.Ops > 0 {
		s := spread.Summarize(off)
		e.Median, e.P90 = s.Median, s.P90
	}
	return e
}
