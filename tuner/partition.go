package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// partition is one way to divide the model among ranks, and what is found out about it. While it is
// open it has workers and the weights, cut its way.
type partition struct {
	*tuning
	cut     *plans.ServiceConfig // nil: by the default heuristic, or by --tp and --threads
	def     *plans.Plan          // untuned: incumbent of every search, and a finalist
	shapes  []plans.TableShape   // of its tables
	isa     microkernel.ISA
	workers *exec.Workers // one for each usable PU
	rig     *rig          // nil where the model cannot be run here; evidence.Rejected says why
	failed  error         // why it cannot be opened

	from, setsEnd, kernelsEnd float64        // parts of the budget
	phases                    [2]phaseTuning // prefill, decode
}

// phaseTuning is what is found out about one phase.
type phaseTuning struct {
	name   string
	sets   []activeSet     // that survive, best first
	tables [][]plans.Table // by set
	winner plans.Phase
	set    activeSet // of the winner

	measured bool // the winner was chosen by measurement; false where the budget was over before
}

// newPartition makes the default plan of a partition; the first one is that of the default plan.
func (t *tuning) newPartition(cut *plans.ServiceConfig) (p *partition, err error) {
	p = &partition{tuning: t, cut: cut}
	p.def, err = heuristic.Default(t.o.Profile, t.shape, heuristic.Options{
		Compute: t.o.Compute, KV: t.o.KV, Attend: t.o.Attend,
		ISA:     t.o.ISA,
		Threads: t.o.Threads, TP: t.o.TP, Service: cut, SeqMax: t.o.SeqMax, BatchMax: t.o.BatchMax})
	if err != nil {
		return nil, err
	}
	if p.shapes, err = p.def.TableShapes(p.def.PUs()); err != nil {
		return nil, err
	}
	p.isa = p.def.ISAOf("")
	for i := range p.phases {
		def := phaseOf(p.def, i)
		p.phases[i] = phaseTuning{name: phaseNames[i], winner: *def, set: activeSet{Name: "default", PUs: def.PUs}}
	}
	if t.home == nil {
		t.home = p
	}
	return p, nil
}

// name tells partitions apart, for people and for the journal.
func (t *partition) name() string {
	if t == t.home {
		return ""
	}
	text := fmt.Sprintf("%d ranks", len(t.def.Ranks))
	for i, r := range t.def.Ranks {
		text += map[bool]string{true: " on PUs ", false: " | "}[i == 0] + r.PUs.String()
	}
	return text
}

// ends gives the partition its part of the budget.
func (t *partition) ends(from, to float64) {
	const sets = 0.2
	t.from, t.setsEnd, t.kernelsEnd = from, from+sets*(to-from), to
}

func (t *partition) opened() bool { return t.workers != nil }

// ready starts the workers and loads the model.
func (t *partition) ready() error {
	if t != t.home {
		if err := t.checkMemory(); err != nil {
			return err
		}
	}
	if err := t.start(t.usable()); err != nil {
		return err
	}
	return t.load()
}

// checkMemory tells whether the weights fit beside those of the default plan.
func (t *partition) checkMemory() error {
	list, err := exec.ForecastMemory(t.rigSize().options(t.def))
	if err != nil {
		return err
	}
	need := int64(0)
	for _, f := range list {
		need += f.Total(1)
	}
	if free := mem.Available(); free > 0 && need > free {
		return &absent{fmt.Sprintf("it needs %s beside the default plan, and %s is free", mem.FormatBytes(need),
			mem.FormatBytes(free))}
	}
	return nil
}

// start starts the workers.
func (t *partition) start(pus []int) (err error) {
	o := exec.PlanWorkers(t.def)
	o.PUs = pus
	t.workers, err = exec.NewWorkers(o)
	return err
}

// usable is the PUs that candidates are made of.
func (t *partition) usable() []int {
	if t.o.Threads > 0 || len(t.def.Ranks) > 1 { // the user has chosen, or each PU has its rank
		return t.def.PUs()
	}
	return t.o.Profile.UsablePUs()
}

// decodeDepth is how many positions each sequence of a decode forward has before it.
const decodeDepth = 128

// load brings the model, or random weights of its shapes, into the rig. A model that does not fit
// in memory is tuned without finalists; one that is not there when the budget ends is not tuned.
func (t *partition) load() error {
	t.say("loading", "the weights of "+t.shape.Name, true)
	ctx, cancel := context.WithTimeoutCause(t.ctx, max(1, t.until(finalistsEnd)), errNoTime)
	defer cancel()
	file, err := t.weights(ctx, t.randomBytes())
	if err != nil {
		return t.withoutRig(err)
	}
	r, err := newRig(ctx, t.workers, file, t.def, t.rigSize())
	if err != nil {
		return t.withoutRig(err)
	}
	r.ctx, r.seed = t.ctx, t.o.Seed
	t.rig = r
	return nil
}

func (t *partition) rigSize() rigSize {
	return rigSize{batch: t.def.BatchMax, depth: min(decodeDepth, max(1, t.shape.Context-1))}
}

// withoutRig goes on without whole forwards when the model cannot be run but can be tuned by shape.
func (t *partition) withoutRig(err error) error {
	switch cause := context.Cause(t.ctx); {
	case cause != nil:
		return cause
	case t != t.home:
		return &absent{"its weights could not be loaded beside those of the default plan: " + err.Error()}
	case errors.Is(err, errNoTime):
		t.reject("finalists", "the budget was over while the model was loaded; give a larger --budget")
		return err
	case t.o.File != nil:
		return err
	}
	t.reject("finalists", "whole forwards cannot be measured: "+err.Error())
	return nil
}

// search chooses sets of PUs and finds their tables.
func (t *partition) search() (err error) {
	if err := t.chooseSets(); err != nil {
		return err
	}
	t.workers.Pool.Lead(func(l *pool.Leader) { err = t.searchTables(l) })
	return err
}

// shut gives workers and weights back.
func (t *partition) shut() {
	if t.rig != nil {
		t.rig.close()
	}
	if t.workers != nil {
		t.workers.Close()
	}
	t.rig, t.workers = nil, nil
	if t.other == t {
		t.other = nil
	}
}

// leaveDecode fills in the phase that nothing runs: on the PUs of the other one, by the default
// heuristic, which hand slices out to any of them.
func (t *partition) leaveDecode() {
	ph := &t.phases[decode]
	ph.set = t.phases[prefill].set
	ph.winner = plans.Phase{PUs: ph.set.PUs, Tables: t.def.Decode.Tables}
}

// service joins the PUs that won each phase.
func (t *partition) service() (plans.ServiceConfig, error) {
	sets := [2]activeSet{t.phases[prefill].set, t.phases[decode].set}
	if len(t.def.Ranks) > 1 { // the weights are cut for these ranks, whichever of their PUs work
		return plans.NewService(t.def.Ranks, sets[prefill].PUs, sets[decode].PUs)
	}
	all := slices.Concat(sets[prefill].PUs, sets[decode].PUs)
	slices.Sort(all)
	ranks, err := heuristic.MakeRanks(t.o.Profile, slices.Compact(all), 1)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	return plans.NewService(ranks, sets[prefill].PUs, sets[decode].PUs)
}
