package llm

import (
	"context"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/model"
)

// runExplain returns where the ops of the tests run, with reasons. It runs none of them.
func (f *llmFlags) runExplain(ctx context.Context) (out []model.Placed, err error) {
	s, err := f.openOne()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	ops, err := model.Of(s.File)
	if err != nil {
		return nil, err
	}
	p := model.Placer{Model: ops, Plan: s.Plan, Machine: roofline.NewMachine(s.Profile)}
	for _, t := range f.tests() {
		phase, rows := model.Phases[1], t.Batch
		p.Context = t.Middle()
		if t.Prefill {
			phase, rows, p.Context = model.Phases[0], min(t.Tokens, s.Plan.Chunk), t.Depth
		}
		list, err := p.At(phase, rows)
		if err != nil {
			return nil, exit.Usage(err)
		}
		out = append(out, model.Join(list)...)
	}
	return out, nil
}
