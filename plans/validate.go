package plans

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel"
)

// Validate rejects plans that no machine can run. The error names the field. It does not compare
// the plan with a host or a model; see the package check.
func (p *Plan) Validate() error {
	if p.Version != Version {
		return fmt.Errorf("version %d; this build writes version %d", p.Version, Version)
	}
	if err := checkName(p.Name); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"seq_max", p.SeqMax}, {"batch_max", p.BatchMax}, {"chunk", p.Chunk}} {
		if f.v < 1 || f.v > maxTokens {
			return fmt.Errorf("%s is %d, not in 1..%d", f.name, f.v, maxTokens)
		}
	}
	if _, err := microkernel.ParseKVType(p.KV.String()); err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	if err := p.Model.Check(); err != nil {
		return err
	}
	service := p.Service()
	if err := service.check(); err != nil {
		return err
	}
	if err := p.checkClasses(); err != nil {
		return err
	}
	if err := p.checkAttention(); err != nil {
		return err
	}
	if err := p.checkWeights(); err != nil {
		return err
	}
	if n := len(p.Model.Weights) * p.TP(); n > maxPieces {
		return fmt.Errorf("%d kinds of weights on %d ranks give more than %d table shapes", len(p.Model.Weights),
			p.TP(), maxPieces)
	}
	shares, err := p.Shares()
	if err != nil {
		return err
	}
	shapes := p.Model.tableShapes(shares)
	for _, ph := range p.phases() {
		if err := p.checkPhase(ph.phase, shapes); err != nil {
			return fmt.Errorf("%s: %w", ph.name, err)
		}
	}
	return p.checkPlacement()
}

// checkName checks that a name is printable and safe in paths and metrics.
func checkName(name string) error {
	if name == "" || len(name) > 128 {
		return fmt.Errorf("the name has %d bytes; use 1 to 128", len(name))
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == '/' || r == '\\' {
			return fmt.Errorf("the name %q has a control character or a slash", name)
		}
	}
	return nil
}

// checkWeights checks that each weight of the model has one entry with a known compute path (rule
// 6).
func (p *Plan) checkWeights() error {
	unique := p.Model.Unique()
	if len(p.Weights) != len(unique) {
		return fmt.Errorf("weights lists %d shapes, but the model has %d", len(p.Weights), len(unique))
	}
	for i, w := range p.Weights {
		if w.WeightKey != unique[i] {
			return fmt.Errorf("weights lists %s where the model has %s", w.WeightKey, unique[i])
		}
		if _, err := microkernel.ParseWeightType(w.Type); err != nil {
			return fmt.Errorf("weight %s: %w", w.WeightKey, err)
		}
		if _, err := microkernel.ParseCompute(w.Compute.String()); err != nil {
			return fmt.Errorf("weight %s: %w", w.WeightKey, err)
		}
	}
	return nil
}

// InexactWeight returns the first weight whose compute path gives other bits on other machines
// (rule 6).
func (p *Plan) InexactWeight() (WeightPlan, bool) {
	for _, w := range p.Weights {
		if !w.Compute.Exact() {
			return w, true
		}
	}
	return WeightPlan{}, false
}

// checkAttention checks that the dot product of attention reads the cache type and that the kernels
// of all workers have it.
func (p *Plan) checkAttention() error {
	if _, err := microkernel.ParseAttentionDot(p.Attention.String()); err != nil {
		return err
	}
	if err := p.Attention.Reads(p.KV); err != nil {
		return err
	}
	for pu := range p.PUs().All() {
		if isa := p.ISAAt(pu); !p.Attention.On(isa, p.Attention.Needs()) {
			return fmt.Errorf("attention by %s: kernels of %s, which PU %d runs, have no such dot product", p.Attention,
				isa, pu)
		}
	}
	return nil
}

// Exact reports whether rule 6 holds in full: the plan gives the same bits on every machine. It
// needs one rank and paths whose rounding does not depend on instructions.
func (p *Plan) Exact() bool {
	_, inexact := p.InexactWeight()
	return p.TP() == 1 && !inexact && p.Attention.Exact()
}

// Rounding returns why the plan is not exact, or "".
func (p *Plan) Rounding() string {
	if p.Exact() {
		return ""
	}
	var why []string
	if w, ok := p.InexactWeight(); ok {
		why = append(why, w.Compute.String()+" instructions")
	}
	if !p.Attention.Exact() {
		why = append(why, fmt.Sprintf("attention by %s", p.Attention))
	}
	if p.TP() > 1 {
		why = append(why, "the partition")
	}
	return "rounding depends on " + strings.Join(why, " and ")
}

func (p *Plan) checkPhase(ph *Phase, shapes []tableShape) error {
	if err := p.checkTables(ph, shapes); err != nil {
		return err
	}
	for i := range ph.Tables {
		t, c := &ph.Tables[i], shapes[i%len(shapes)]
		compute, err := p.computeOf(c)
		if err != nil {
			return err
		}
		if err := t.check(compute, p.threads(c, ph.PUs)); err != nil {
			return fmt.Errorf("table %s: %w", t.title(), err)
		}
	}
	return p.checkSameBits(ph)
}

// check checks that rules ascend without overlap and that only the last one is open.
func (t *Table) check(compute microkernel.Compute, threads []int) error {
	if len(t.Rules) < 1 || len(t.Rules) > maxRules {
		return fmt.Errorf("%d rules, not 1..%d", len(t.Rules), maxRules)
	}
	last := 0
	for i, r := range t.Rules {
		open := r.MHi == 0
		switch {
		case r.MLo < 1 || r.MLo > maxTokens || r.MHi < 0 || r.MHi > maxTokens:
			return fmt.Errorf("rule for m %s is not within 1..%d", r.Span(), maxTokens)
		case r.MLo <= last || !open && r.MHi < r.MLo:
			return fmt.Errorf("rule for m %s must start after the previous rule", r.Span())
		case open != (i == len(t.Rules)-1):
			return fmt.Errorf("rule for m %s: the last rule must be open, and no other", r.Span())
		}
		last = r.MHi
		if err := r.Schedule.check(t.WeightKey, compute, threads); err != nil {
			return fmt.Errorf("rule for m %s: %w", r.Span(), err)
		}
	}
	return nil
}

// Fits reports whether a schedule can run a weight with a compute path and a number of threads. The
// error says why not. The tuner calls it for stored results.
func (s Schedule) Fits(k WeightKey, compute microkernel.Compute, threads int) error {
	return s.check(k, compute, []int{threads})
}

// check checks whether the schedule can run the weight with one of the numbers of threads.
func (s Schedule) check(k WeightKey, compute microkernel.Compute, threads []int) error {
	if err := s.Kernel.Validate(); err != nil {
		return err
	}
	if got := s.Kernel.Compute; got != compute {
		return fmt.Errorf("kernel %s has the compute path %s, but the weight has %s", s.Kernel, got, compute)
	}
	if err := s.checkWiden(k); err != nil {
		return err
	}
	if err := s.checkSlice(k); err != nil {
		return err
	}
	switch {
	case s.WaysM == 0 && s.WaysN == 0:
	case s.WaysM < 1 || s.WaysN < 1 || s.WaysM > maxWays || s.WaysN > maxWays:
		return fmt.Errorf("ways %dx%d are out of range; each must be 1 to %d", s.WaysM, s.WaysN, maxWays)
	case !slices.Contains(threads, s.WaysM*s.WaysN):
		return fmt.Errorf("the product of the ways %dx%d is not the number of active threads, %d", s.WaysM, s.WaysN,
			threads[0])
	}
	return nil
}

// checkWiden checks that kernel and weight have the same type, or distinct types if the slice is
// widened.
func (s Schedule) checkWiden(k WeightKey) error {
	if !s.Widen {
		if got := s.Kernel.B.String(); got != k.Type {
			return fmt.Errorf("kernel %s reads %s, but the weight is %.20q", s.Kernel, got, k.Type)
		}
		return nil
	}
	switch {
	case k.Type == microkernel.F32.String():
		return fmt.Errorf("widen: the weight is f32 already")
	case s.Kernel.Compute != microkernel.ComputeF32 || s.Kernel.B != microkernel.F32:
		return fmt.Errorf("widen: the kernel %s does not read widened f32 panels", s.Kernel)
	}
	depth := s.BK
	if depth == 0 {
		depth = k.K
	}
	if int64(s.BN)*int64(depth) > maxWidened {
		return fmt.Errorf("widen: a slice of bn %d and bk %d has more than %d values", s.BN, depth, maxWidened)
	}
	return nil
}

// checkSlice checks that bm and bn are multiples of the register tile, and bk of 16 and of the
// quantization block.
func (s Schedule) checkSlice(k WeightKey) error {
	for _, d := range []struct {
		name    string
		v, unit int
	}{{"bm", s.BM, s.Kernel.MR}, {"bn", s.BN, s.Kernel.NR}} {
		if d.v < 1 || d.v > maxSlice || d.v%d.unit != 0 {
			return fmt.Errorf("%s is %d, not a multiple of %d in 1..%d", d.name, d.v, d.unit, maxSlice)
		}
	}
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return err
	}
	if k.K%t.Block() != 0 {
		return fmt.Errorf("k %d is not a multiple of the %s block of %d", k.K, k.Type, t.Block())
	}
	unit := max(16, s.Kernel.Compute.KStep(t))
	depth := s.BK
	if depth == 0 {
		depth = k.K
	}
	if s.Pack && int64(s.BM)*int64(depth) > maxPacked {
		return fmt.Errorf("pack: a slice of bm %d and bk %d has more than %d activations", s.BM, depth, maxPacked)
	}
	if s.BK != 0 && (s.BK < 0 || s.BK > maxSlice || s.BK%unit != 0) {
		return fmt.Errorf("bk is %d, not a multiple of %d in 1..%d", s.BK, unit, maxSlice)
	}
	return nil
}

// Needs returns the features that a host needs to run the plan's kernels, without those of optional
// classes.
func (p *Plan) Needs() microkernel.Features {
	f := p.Attention.Needs()
	for _, ph := range p.phases() {
		for _, t := range ph.phase.Tables {
			if c := p.class(t.Class); c != nil && c.Optional {
				continue
			}
			for _, r := range t.Rules {
				f |= r.Schedule.Kernel.Needs()
			}
		}
	}
	return f
}
