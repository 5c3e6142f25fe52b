package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/counters"
	"sandwich/runtime/energy/live"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/llm"
)

// llmFlags holds the flags of bench llm without a subcommand.
type llmFlags struct {
	testFlags
	session modelflags.Flags
	reps    int
	threads []int
	sync    []string
	compare bool
	ceiling bool

	speculate string // value of --speculate

	counters        bool
	source          counters.Source
	neighbor        string               // value of --neighbor
	neighborSpec    llm.Neighbor         // parsed by check
	neighborProcess *llm.NeighborProcess // runs while run does; nil without --neighbor
}

// check rejects values out of range and parses --neighbor.
func (f *llmFlags) check() error {
	if err := cmp.Or(f.testFlags.check(), checkReps(f.reps)); err != nil {
		return err
	}
	for _, t := range f.threads {
		if t < 1 {
			return exit.Usage(fmt.Errorf("--threads %d is too small; give numbers of at least 1", t))
		}
	}
	for _, s := range f.sync {
		if _, ok := syncs[s]; !ok {
			return exit.Usage(flags.Unknown("sync", s, "a", "b", "both"))
		}
	}
	if f.neighbor == "" {
		return nil
	}
	f.session.FirstPUs = true // the neighbor runs on the PU that its value names
	var err error
	f.neighborSpec, err = parseNeighbor(f.neighbor)
	return exit.Usage(err)
}

// run measures the tests for each number of threads.
func (f *llmFlags) run(ctx context.Context) ([]llm.Row, error) {
	s, err := f.session.Load()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	if f.neighbor != "" {
		if f.neighborProcess, err = startNeighbor(ctx, f.neighborSpec); err != nil {
			return nil, err
		}
		defer f.neighborProcess.Stop()
	}
	threads := f.threads
	if len(threads) == 0 {
		threads = []int{0}
	}
	var rows []llm.Row
	for _, n := range threads {
		f.session.Threads = n
		more, err := f.runThreads(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// runThreads measures every test with the plans for one number of threads.
func (f *llmFlags) runThreads(ctx context.Context, s *session.Session) ([]llm.Row, error) {
	arms, err := f.openArms(ctx, s)
	defer func() {
		for _, a := range arms {
			a.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	ops, err := arch.ModelOf(s.File) // which says more than the shape: windows of layers
	if err != nil {
		return nil, err
	}
	tests := f.tests()
	step, done := show.StepBar("bench llm", len(tests)*len(arms)*(f.reps+1))
	defer done()
	meter := live.Open(s.Accelerator.Name, s.Accelerator.Device)
	rows, err := llm.Run(ctx, llm.Options{Arms: arms, Tests: tests, Reps: f.reps, Model: s.Name, Ops: ops,
		Vocab: s.Shape.Vocab, Host: s.Profile, Meter: meter, Neighbor: f.neighborProcess, Step: step})
	return rows, errors.Join(err, meter.Close())
}
