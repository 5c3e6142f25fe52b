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
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
)

// partition is one division of the model among ranks with its tuning results. While it is open, it
// has workers and the weights divided accordingly.
type partition struct {
	*tuning
	cut     *plans.ServiceConfig // nil: chosen by the default heuristic, or by --tp and --threads
	def     *plans.Plan          // untuned plan: incumbent of every search, and a finalist
	shapes  []plans.TableShape   // shapes of the tables
	isa     microkernel.ISA
	workers *exec.Workers // one worker for each usable PU
	rig     *rig          // nil if the model cannot run here; evidence.Rejected has the reason
	failed  error         // reason why it cannot be opened

	from, setsEnd, kernelsEnd float64        // parts of the budget
	phases                    [2]phaseTuning // prefill, decode
}

// phaseTuning is the tuning state of one phase.
type phaseTuning struct {
	name   string
	sets   []ranking.ActiveSet // sets that remain, best first
	tables [][]plans.Table     // tables of each set
	winner plans.Phase
	set    ranking.ActiveSet // set of the winner

	measured bool // the winner was chosen by measurement; false if the budget ended first
}

// newPartition makes the default plan of a partition. The first call makes the partition of the
// default plan.
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
		p.phases[i] = phaseTuning{name: phaseNames[i], winner: *def, set: ranking.ActiveSet{Name: "default",
			PUs: def.PUs}}
	}
	if t.home == nil {
		t.home = p
	}
	return p, nil
}

// name identifies the partition in messages and in the journal.
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

// ends assigns the partition its part of the budget.
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

// checkMemory returns an error if the weights do not fit in memory together with those of the
// default plan.
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
		return &race.Absent{Why: fmt.Sprintf("it needs %s in addition to the default plan, and %s is free",
			mem.FormatBytes(need),
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

// usable returns the PUs from which candidates are made.
func (t *partition) usable() []int {
	if t.o.Threads > 0 || len(t.def.Ranks) > 1 { // chosen by the user, or one PU per rank
		return t.def.PUs()
	}
	return t.o.Profile.UsablePUs()
}

// decodeDepth is the number of positions before each sequence of a decode forward.
const decodeDepth = 128

// load loads the model, or random weights of its shapes, into the rig. A model that does not fit in
// memory is tuned without finalists. A model that is not loaded when the budget ends is not tuned.
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

// withoutRig continues without whole forwards if the model cannot run but can be tuned by shape.
func (t *partition) withoutRig(err error) error {
	switch cause := context.Cause(t.ctx); {
	case cause != nil:
		return cause
	case t != t.home:
		return &race.Absent{Why: "its weights could not be loaded in addition to those of the default plan: " +
			err.Error()}
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

// shut releases workers and weights.
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

// leaveDecode fills in the unused decode phase: the PUs of prefill with the schedules of the
// default heuristic, which may assign slices to any worker.
func (t *partition) leaveDecode() {
	ph := &t.phases[decode]
	ph.set = t.phases[prefill].set
	ph.winner = plans.Phase{PUs: ph.set.PUs, Tables: t.def.Decode.Tables}
}

// service returns the service configuration with the winning PUs of each phase.
func (t *partition) service() (plans.ServiceConfig, error) {
	sets := [2]ranking.ActiveSet{t.phases[prefill].set, t.phases[decode].set}
	if len(t.def.Ranks) > 1 { // the weights are divided for these ranks regardless of the active PUs
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
