package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/internal/message"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/heuristic"
	"sandwich/plans/summary"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/profiles/occupancy"
	"sandwich/roofline"
)

// Options holds the user's choices other than host and model. The zero value selects defaults.
type Options struct {
	Path   string // of the bundle to run under; "" takes the newest of Folder that fits, else a heuristic
	Folder string // where plans and rates are kept; "" where there is none
	Build  string // names the kernels of this program: the rates of other ones are not taken; letters and digits

	ISA     string // of the kernels; "": the widest
	KV      string // type of the KV cache; "": as the plan says
	Compute string // auto (also "") or a path
	Attend  string // arithmetic of attention's dot products: auto, or a name; "": as the plan says
	Threads int    // 0: as the plan says
	TP      int    // ranks; 0: as the plan says

	// Find returns the plan of a list of plans for a host and a model, and its location for
	// messages; nil if the list has none, and then the untuned default is used. It replaces Path
	// and the plans of Folder. The caller may change the bundle. nil: no list.
	Find func(host *profiles.Profile, shape *plans.ModelShape) (where string, b *bundle.Bundle, err error)

	// Device restricts the paths of weights to those that device kernels have, experts excepted.
	Device bool
	// AnyPlacement ignores the placement of a plan on devices, since the caller chooses the device.
	AnyPlacement bool
	// Devices lists the devices of this host, for plans with a placement. nil: unknown.
	Devices func() []devrates.Device

	// Occupancy reports which PUs are in use, for untuned plans that do not use all PUs; nil: use
	// the first ones.
	Occupancy occupancy.Monitor

	// measure replaces calibrate.Rates in tests.
	measure func(context.Context, *profiles.Profile, microkernel.ISA, ...string) ([]profiles.Ceiling, error)
}

// BundleError reports that the requested bundle cannot be used; plans.ExitCode classifies it.
type BundleError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *BundleError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *BundleError) Unwrap() error { return e.Err }

// Choice is the plan to run.
type Choice struct {
	Plan    *plans.Plan
	Path    string // of its bundle; "" for the untuned default
	Paths   string // why the untuned default rounds as it does; "" where there is nothing to say
	Lacks   string // a sentence if the cores take the place of a device; else ""
	State   bundle.State
	Verdict check.Verdict
	Bundle  *bundle.Bundle // nil for the untuned default

	// Occupancy moves workers away from PUs that other processes use; nil if the plan fixes its PUs
	// or needs all of them.
	Occupancy occupancy.Monitor
}

// FromBundle returns the plan of a bundle, verified for a host and a model.
func FromBundle(path string, b *bundle.Bundle, host *profiles.Profile, shape *plans.ModelShape) *Choice {
	return &Choice{Plan: &b.Plan, Path: path, State: b.State(), Verdict: check.Verify(b, host, shape), Bundle: b}
}

// fromBundle is FromBundle for a plan that may have a placement. It drops the placement if the
// caller chooses the device, or if the host lacks the device and the plan allows the cores.
func (o *Options) fromBundle(path string, b *bundle.Bundle, host *profiles.Profile, shape *plans.ModelShape) *Choice {
	id, _, _ := b.Plan.Device()
	switch {
	case id == "":
	case o.AnyPlacement:
		b.Plan.Placement = nil
	case o.Devices != nil:
		here := *host
		here.Devices = append([]devrates.Device{}, o.Devices()...)
		c := FromBundle(path, b, &here, shape)
		if here.Device(id) == nil && c.Verdict.Judgement != check.Invalid {
			c.Lacks = fmt.Sprintf("note: this host lacks device %s, so the cores run its phases; it has %s", id,
				here.DeviceText())
			b.Plan.Placement = nil
		}
		return c
	}
	return FromBundle(path, b, host, shape)
}

// String describes the plan in one line, with a recommendation.
func (c *Choice) String() string {
	switch {
	case c.Path == "":
		return summary.Headline(c.Plan, c.State) + "; `sandwich tune` makes a tuned one"
	case c.Verdict.Judgement == check.Retune:
		return c.Path + ": " + summary.Headline(c.Plan, c.State) + "; tune again: " + c.Verdict.Reasons[0]
	}
	return c.Path + ": " + summary.Headline(c.Plan, c.State)
}

// Choose returns the plan to run and reserves its PUs: the requested one, else the newest of the
// data folder for this host and model that the other flags permit, else the untuned default.
func (o *Options) Choose(host *profiles.Profile, shape plans.ModelShape) (*Choice, error) {
	c, err := o.choose(host, shape)
	if err == nil {
		o.reserve(c.Plan)
	}
	return c, err
}

func (o *Options) choose(host *profiles.Profile, shape plans.ModelShape) (*Choice, error) {
	if err := o.CheckISA(host); err != nil {
		return nil, err
	}
	fallback, err := o.byDefault(host, shape, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Path != "":
		return o.named(host, shape, fallback)
	case o.Find != nil:
		where, b, err := o.Find(host, &shape)
		if err != nil {
			return nil, err
		}
		if b != nil {
			return o.given(where, b, host, shape, fallback)
		}
	default:
		if c := o.stored(host, shape, fallback); c != nil {
			return c, nil
		}
	}
	plan, paths, err := o.Untuned(host, shape)
	if err != nil {
		return nil, err
	}
	return &Choice{Plan: plan, Paths: paths, State: bundle.Untuned, Verdict: check.Verdict{Judgement: check.Suboptimal},
		Occupancy: o.monitor(host)}, nil
}

// Untuned returns the default plan with the measured rates of this machine, and describes the
// choices that depend on rates: the path of bf16 weights and the dot product of attention. Without
// a data folder it measures rates only if they affect results. If the plan does not need all PUs,
// it uses those with the least load.
func (o *Options) Untuned(host *profiles.Profile, shape plans.ModelShape) (plan *plans.Plan,
	paths string, err error) {
	options := o.heuristic()
	pairs, attention := heuristic.PairsOpen(host, shape, options), heuristic.AttentionOpen(host, shape, options)
	integers := heuristic.IntegersOpen(host, shape, options)
	if pairs || attention || integers || o.tilesOpen(host) {
		sums := heuristic.SumsOpen(host, shape, options)
		rated, failed := o.rated(host, attention, sums)
		if failed == nil || pairs || attention || integers {
			host = rated
		}
		paths = o.choices(host, pairs, attention, failed)
		if said := heuristic.SumsChoice(host, shape); sums && said != "" {
			paths = strings.Trim(said+"; "+paths, "; ")
		}
	}
	if err := o.check(host, shape); err != nil {
		return nil, paths, err
	}
	service, err := o.place(host)
	if err != nil {
		return nil, paths, err
	}
	plan, err = o.byDefault(host, shape, service)
	return plan, paths, err
}

// choices describes what the measured rates decide, or that they could not be measured.
func (o *Options) choices(host *profiles.Profile, pairs, attention bool, failed error) string {
	var said []string
	best := host.Features().Best()
	if r, ok := roofline.NewMachine(host).BF16Rates(best); pairs && ok {
		tiles := roofline.NewMachine(host).KernelRates(best)[microkernel.BF16TileKernel]
		said = append(said, heuristic.Choice(r, tiles))
	} else if pairs && failed != nil {
		said = append(said, "bf16 weights use float32, since the rate of bf16 could not be measured: "+
			failed.Error())
	}
	if r := roofline.NewMachine(host).AttentionRates(best); attention && len(r) > 0 {
		said = append(said, heuristic.AttentionChoice(o.heuristic(), r,
			roofline.NewMachine(host).AttentionStepRates(best)))
	} else if attention && failed != nil {
		said = append(said, "attention uses float32, since other rates could not be measured: "+failed.Error())
	}
	return strings.Join(said, "; ")
}

// tilesOpen reports whether measured rates affect the tiles of an untuned plan and can be stored.
func (o *Options) tilesOpen(host *profiles.Profile) bool {
	best := host.Features().Best()
	return o.Folder != "" && best.Generates() && (o.ISA == "" || o.ISA == best.String())
}

func (o *Options) heuristic() heuristic.Options {
	return heuristic.Options{Compute: o.Compute, KV: o.KV, Attend: o.Attend, ISA: o.ISA, Threads: o.Threads, TP: o.TP,
		Device: o.Device}
}

// byDefault returns the default plan for the flags and the profile's ceilings, with the given ranks
// and PUs, or the first PUs if service is nil.
func (o *Options) byDefault(host *profiles.Profile, shape plans.ModelShape, service *plans.ServiceConfig) (*plans.Plan,
	error) {
	if err := o.check(host, shape); err != nil {
		return nil, err
	}
	options := o.heuristic()
	options.Service = service
	return heuristic.Default(host, shape, options)
}

// check rejects numbers of workers and ranks that the host or the model does not permit.
func (o *Options) check(host *profiles.Profile, shape plans.ModelShape) error {
	if err := o.CheckThreads(host); err != nil {
		return err
	}
	return o.checkRanks(host, shape)
}

// checkRanks rejects a number of ranks among which the model cannot be divided or for which there
// are too few PUs.
func (o *Options) checkRanks(host *profiles.Profile, shape plans.ModelShape) error {
	if o.TP <= 1 {
		return nil
	}
	if err := shape.Partition(o.TP); err != nil {
		return fmt.Errorf("--tp %w", err)
	}
	pus := o.Threads
	if pus == 0 {
		pus = host.CorePUs().Count()
	}
	if o.TP > pus {
		return fmt.Errorf("--tp %d needs a PU for each rank, but the plan has %s: use a smaller "+
			"number, or more --threads", o.TP, message.Plural(pus, "PU"))
	}
	return nil
}

// CheckThreads rejects more workers than PUs.
func (o *Options) CheckThreads(host *profiles.Profile) error {
	if usable := host.UsablePUs(); o.Threads > usable.Count() {
		return fmt.Errorf("--threads %d: this process may use %d PUs (%s), give no more", o.Threads, usable.Count(),
			usable)
	}
	return nil
}

// CheckISA rejects instruction sets that are unknown or that this CPU lacks, and worker indexes
// that are too large.
func (o *Options) CheckISA(host *profiles.Profile) error {
	isas, err := plans.ParseWorkerISAs(o.ISA)
	if err != nil {
		return fmt.Errorf("--isa: %w", err)
	}
	have := host.Features()
	if isa, err := microkernel.ParseISA(isas.All); isas.All != "" && (err != nil || !have.Supports(isa)) {
		return fmt.Errorf("--isa %s: this CPU runs %v", isas.All, have.ISAs())
	}
	for _, worker := range slices.Sorted(maps.Keys(isas.Of)) {
		isa := isas.Of[worker]
		switch {
		case !have.Supports(isa):
			return fmt.Errorf("--isa %d=%s: this CPU runs %v", worker, isa, have.ISAs())
		case o.Path == "" && worker >= o.workers(host):
			return fmt.Errorf("--isa %d=%s: the workers are 0 to %d", worker, isa, o.workers(host)-1)
		}
	}
	return nil
}

// workers returns the number of workers without a plan.
func (o *Options) workers(host *profiles.Profile) int {
	if o.Threads > 0 {
		return o.Threads
	}
	return host.CorePUs().Count()
}

// named reads and checks the requested plan.
func (o *Options) named(host *profiles.Profile, shape plans.ModelShape, fallback *plans.Plan) (*Choice,
	error) {
	b, err := bundle.Read(o.Path)
	if err != nil {
		return nil, &BundleError{err}
	}
	return o.given(o.Path, b, host, shape, fallback)
}

// given checks a bundle that the user named, or that a list named by the user contains.
func (o *Options) given(path string, b *bundle.Bundle, host *profiles.Profile, shape plans.ModelShape,
	fallback *plans.Plan) (*Choice, error) {
	c := o.fromBundle(path, b, host, &shape)
	if c.Verdict.Judgement == check.Invalid {
		return nil, &BundleError{c.Verdict.Err}
	}
	c.Plan = c.Plan.FitClasses(host.Features(), host.Machine)
	if err := o.adapt(c.Plan, fallback); err != nil {
		return nil, fmt.Errorf("%w: leave the flag out, or %s", err, o.planFlag())
	}
	return c, nil
}

// planFlag returns the flag that named the plan.
func (o *Options) planFlag() string {
	if o.Path != "" {
		return "--plan"
	}
	return "--plans"
}

// stored returns the newest usable plan of the data folder, or nil if there is none.
func (o *Options) stored(host *profiles.Profile, shape plans.ModelShape, fallback *plans.Plan) *Choice {
	if o.Folder == "" {
		return nil
	}
	path, b, err := bundle.FindNewest(o.Folder, host.Fingerprint(), shape.Digest())
	if err != nil {
		return nil
	}
	c := o.fromBundle(path, b, host, &shape)
	if c.Verdict.Judgement == check.Invalid {
		return nil
	}
	if c.Plan = c.Plan.FitClasses(host.Features(), host.Machine); o.adapt(c.Plan, fallback) != nil {
		return nil
	}
	return c
}

// Replan returns a function that makes plans for the remaining PUs of a plan
// (engine.RunnerOptions.Replan). It keeps the arithmetic of the weights, so that running sequences
// keep their results.
func (o *Options) Replan(host *profiles.Profile, shape plans.ModelShape,
	plan *plans.Plan) func(*plans.ServiceConfig) (*plans.Plan, error) {
	options := heuristic.Options{Compute: o.Compute, KV: plan.KV.String(), Attend: plan.Attention.String(), Like: plan,
		Weights: slices.Clone(plan.Weights)}
	return func(service *plans.ServiceConfig) (*plans.Plan, error) {
		options := options
		options.Service = service
		return heuristic.Default(host, shape, options)
	}
}
