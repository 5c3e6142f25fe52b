package llm

import (
	"context"
	"fmt"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/engine"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/llm"
)

var syncs = map[string]tp.Sync{"a": tp.SyncA, "b": tp.SyncB}

// chooseArms returns the chosen plan, one arm for each way to wait if it has several ranks, and the
// untuned plan of one rank to compare with.
func (f *llmFlags) chooseArms(s *session.Session) (chosen []*llm.Arm, err error) {
	if err := f.session.Choose(s); err != nil {
		return nil, err
	}
	plan := s.Plan
	if plan.TP() == 1 {
		chosen = []*llm.Arm{{Name: llm.PlanName(plan), Plan: plan}}
	} else {
		for _, sync := range f.sync {
			chosen = append(chosen, &llm.Arm{Plan: plan, Sync: syncs[sync],
				Name: fmt.Sprintf("%s, %d ranks, sync %s", llm.PlanName(plan), plan.TP(), sync)})
		}
	}
	if s.Accelerator.Device != nil {
		chosen[0].Name += onDevice(s)
	}
	if f.compare && (plan.Tuned || plan.TP() > 1 || s.Accelerator.Device != nil) {
		o := f.session
		o.Ranks = 1
		untuned, err := o.Untuned(s.Profile, s.Shape)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, &llm.Arm{Name: "untuned", Plan: untuned})
	}
	return chosen, nil
}

// onDevice returns the end of the name of an arm with the device of a session.
func onDevice(s *session.Session) string { return " with " + s.Accelerator.Name }

// openArms loads the model for every arm.
func (f *llmFlags) openArms(ctx context.Context, s *session.Session) ([]*llm.Arm, error) {
	chosen, err := f.chooseArms(s)
	if err != nil {
		return nil, err
	}
	var open []*llm.Arm
	for _, a := range chosen {
		s.Plan = a.Plan
		o, done := s.RunnerOptions(kvcache.BlocksFor(llm.Positions(f.tests())), f.batch)
		o.Sync, o.Sequences = a.Sync, f.batch
		runner, err := forward.Open(ctx, o)
		done()
		if err != nil {
			return open, exit.Model(err)
		}
		s.NoticeMisplaced(runner)
		a.Runner = runner
		open = append(open, a)
		if s.Accelerator.Device != nil && a == chosen[0] {
			positions := llm.Positions(f.tests())
			if a.Device, err = engine.Accelerate(ctx, runner, s.Accelerator, f.batch, positions); err != nil {
				return open, exit.Model(err)
			}
			if a.Device == nil {
				a.Name = strings.TrimSuffix(a.Name, onDevice(s))
			}
			a.Device.OrCores(func(err error) {
				a.Name += " (lost)"
				show.Notice(fmt.Sprintf("%s: the device failed; the cores run the tests: %v", s.Accelerator.Name, err))
			})
		}
		if f.counters {
			a.Count(f.source)
		}
	}
	return open, nil
}
