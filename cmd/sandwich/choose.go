package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
)

// dataFolderText is how help and messages name the data folder.
const dataFolderText = "the data folder"

// dataFolder is where tune leaves plans and where the other verbs look for them:
// $XDG_DATA_HOME/sandwich, else ~/.local/share/sandwich.
func dataFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sandwich"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("no data folder: neither XDG_DATA_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "share", "sandwich"), nil
}

// choice is the plan to run under.
type choice struct {
	plan    *plans.Plan
	path    string // of its bundle; "" for the untuned default
	paths   string // why the untuned default multiplies bf16 weights as it does; "" where there is nothing to say
	state   plans.State
	verdict plans.Verdict
}

func bundleChoice(path string, b *plans.Bundle, host *profiles.Profile, shape *plans.ModelShape) *choice {
	return &choice{plan: &b.Plan, path: path, state: b.State(), verdict: plans.Verify(b, host, shape)}
}

// String names the plan on one line, with what to do about it.
func (c *choice) String() string {
	switch {
	case c.path == "":
		return c.plan.Headline(c.state) + "; `sandwich tune` makes a tuned one"
	case c.verdict.Judgement == plans.Retune:
		return c.path + ": " + c.plan.Headline(c.state) + "; tune again: " + c.verdict.Reasons[0]
	}
	return c.path + ": " + c.plan.Headline(c.state)
}

// choosePlan returns the plan to run under: the one asked for, else the newest of the data folder
// for this host and model that the other flags allow, else the untuned default.
func (f *sessionFlags) choosePlan(host *profiles.Profile, shape plans.ModelShape) (*choice, error) {
	if err := f.checkISA(host); err != nil {
		return nil, usageError(err)
	}
	fallback, err := f.byDefault(host, shape)
	if err != nil {
		return nil, usageError(err)
	}
	if f.plan != "" {
		return f.namedPlan(host, shape, fallback)
	}
	if c := f.storedPlan(host, shape, fallback); c != nil {
		return c, nil
	}
	plan, paths, err := f.untuned(host, shape)
	if err != nil {
		return nil, usageError(err)
	}
	return &choice{plan: plan, paths: paths, state: plans.Untuned, verdict: plans.Verdict{Judgement: plans.Suboptimal}},
		nil
}

// untuned is the plan that runs where there is no other, and why it multiplies bf16 weights as it
// does: by this machine's rates where the flags leave that open.
func (f *sessionFlags) untuned(host *profiles.Profile, shape plans.ModelShape) (plan *plans.Plan,
	paths string, err error) {
	if thumb.PairsOpen(host, shape, f.defaults()) {
		var failed error
		if host, failed = rated(host); failed != nil {
			paths = "bf16 weights are multiplied in float32, since the rate of bf16 could not be measured: " +
				failed.Error()
		}
		if r, ok := host.PairRates(host.Features().Best()); ok {
			paths = thumb.Choice(r)
		}
	}
	plan, err = f.byDefault(host, shape)
	return plan, paths, err
}

func (f *sessionFlags) defaults() thumb.Options {
	return thumb.Options{Compute: f.compute, KV: f.kv, ISA: f.isa, Threads: f.threads, TP: f.ranks}
}

// byDefault is the default plan under the flags, by the ceilings that the profile has.
func (f *sessionFlags) byDefault(host *profiles.Profile, shape plans.ModelShape) (*plans.Plan, error) {
	if err := f.checkThreads(host); err != nil {
		return nil, err
	}
	if err := f.checkRanks(host, shape); err != nil {
		return nil, err
	}
	return thumb.Default(host, shape, f.defaults())
}

// checkRanks refuses a number of ranks that the model cannot be cut for or that the PUs do not
// suffice for.
func (f *sessionFlags) checkRanks(host *profiles.Profile, shape plans.ModelShape) error {
	if f.ranks <= 1 {
		return nil
	}
	if err := shape.Partition(f.ranks); err != nil {
		return fmt.Errorf("--tp %w: give a smaller number", err)
	}
	pus := f.threads
	if pus == 0 {
		pus = len(host.CorePUs())
	}
	if f.ranks > pus {
		return fmt.Errorf("--tp %d: the work is for %s, and each rank needs one of its own: give a smaller "+
			"number, or more --threads", f.ranks, plural(pus, "PU"))
	}
	return nil
}

// checkOn refuses flags that mean nothing, and those that this host cannot follow.
func (f *sessionFlags) checkOn(host *profiles.Profile) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.checkISA(host); err != nil {
		return err
	}
	return f.checkThreads(host)
}

// checkThreads refuses more workers than PUs.
func (f *sessionFlags) checkThreads(host *profiles.Profile) error {
	if usable := host.UsablePUs(); f.threads > len(usable) {
		return fmt.Errorf("--threads %d: this process may use %d PUs (%s), give no more", f.threads, len(usable),
			plans.PUSet(usable))
	}
	return nil
}

// checkISA refuses an instruction set that is unknown or that this CPU lacks.
func (f *sessionFlags) checkISA(host *profiles.Profile) error {
	if f.isa == "" {
		return nil
	}
	isa, err := microkernel.ParseISA(f.isa)
	if err != nil {
		return fmt.Errorf("--isa: %w", err)
	}
	if !host.Features().Supports(isa) {
		return fmt.Errorf("--isa %s: this CPU runs %v", isa, host.Features().ISAs())
	}
	return nil
}

// namedPlan reads and checks the plan of --plan.
func (f *sessionFlags) namedPlan(host *profiles.Profile, shape plans.ModelShape, fallback *plans.Plan) (*choice,
	error) {
	b, err := plans.Read(f.plan)
	if err != nil {
		return nil, planError(err)
	}
	c := bundleChoice(f.plan, b, host, &shape)
	if c.verdict.Judgement == plans.Invalid {
		return nil, planError(c.verdict.Err)
	}
	if err := f.adapt(c.plan, fallback); err != nil {
		return nil, usageError(fmt.Errorf("%w: leave the flag out, or --plan", err))
	}
	return c, nil
}

// storedPlan looks into the data folder. Whatever is wrong with what lies there, the default plan
// runs instead.
func (f *sessionFlags) storedPlan(host *profiles.Profile, shape plans.ModelShape, fallback *plans.Plan) *choice {
	dir, err := dataFolder()
	if err != nil {
		return nil
	}
	path, b, err := plans.FindNewest(dir, host.Fingerprint(), shape.Digest())
	if err != nil {
		return nil
	}
	c := bundleChoice(path, b, host, &shape)
	if c.verdict.Judgement == plans.Invalid || f.adapt(c.plan, fallback) != nil {
		return nil
	}
	return c
}

// adapt applies the flags that a plan can follow and refuses those that contradict what it was
// tuned for.
func (f *sessionFlags) adapt(p, asked *plans.Plan) error {
	if f.compute != "auto" && f.compute != "" && !slices.Equal(p.Weights, asked.Weights) {
		return fmt.Errorf("the plan %s does not compute in %s throughout", p.Name, f.compute)
	}
	if f.isa != "" {
		for _, k := range p.Kernels() {
			if k.ISA.String() != f.isa {
				return fmt.Errorf("the plan %s has kernels for %s", p.Name, k.ISA)
			}
		}
	}
	if f.ranks > 0 && f.ranks != p.TP() {
		return fmt.Errorf("the plan %s is for %s, not for --tp %d", p.Name, plural(p.TP(), "rank"), f.ranks)
	}
	if f.kv != "" {
		kv, err := microkernel.ParseKVType(f.kv)
		if err != nil {
			return err
		}
		p.KV = kv
	}
	if f.threads > 0 {
		return cutThreads(p, f.threads)
	}
	return nil
}

// cutThreads keeps n PUs of each phase, the first ones of each rank in turn. Slices are then handed
// out dynamically, since a static scheme is made for its number of threads.
func cutThreads(p *plans.Plan, n int) error {
	if most := max(len(p.Prefill.PUs), len(p.Decode.PUs)); n > most {
		return fmt.Errorf("the plan %s uses %d PUs, fewer than --threads %d", p.Name, most, n)
	}
	if ranks := p.TP(); n < ranks {
		return fmt.Errorf("the plan %s has %d ranks, which --threads %d leaves without a thread of their own",
			p.Name, ranks, n)
	}
	keep := func(pus plans.PUSet) plans.PUSet {
		if len(pus) <= n {
			return pus
		}
		return thumb.FirstOfEach(p.Ranks, pus, n)
	}
	s, err := plans.NewService(p.Ranks, keep(p.Prefill.PUs), keep(p.Decode.PUs))
	if err != nil {
		return err
	}
	for _, phase := range []*plans.Phase{&p.Prefill, &p.Decode} {
		if len(phase.PUs) <= n {
			continue
		}
		for _, t := range phase.Tables {
			for i := range t.Rules {
				t.Rules[i].Schedule.WaysM, t.Rules[i].Schedule.WaysN = 0, 0
			}
		}
	}
	p.Use(s)
	return nil
}

// planError gives a refusal of a plan its exit code and its remedy.
func planError(err error) error {
	code := plans.ExitCode(err)
	if code == exitFailed && errors.Is(err, os.ErrNotExist) {
		code = exitInput
	}
	switch {
	case err == nil:
		return nil
	case code == exitForeign:
		err = fmt.Errorf("%w; `sandwich tune` makes a plan for this host and model", err)
	case code == exitInput:
		err = fmt.Errorf("%w; copy it again, or make it again with `sandwich tune`", err)
	}
	return withCode(code, err)
}
