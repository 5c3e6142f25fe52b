package llm

import (
	"context"
	"errors"

	clidrafts "sandwich/cmd/sandwich/internal/cli/bench/drafts"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/tuner/measure/drafts"
)

// runDrafts measures each number of generated tokens with and without drafts.
func (f *llmFlags) runDrafts(ctx context.Context) (rows []drafts.Row, err error) {
	accept, err := clidrafts.ParseAccept("--speculate", f.speculate)
	if err != nil {
		return nil, err
	}
	if len(f.threads) > 1 || f.neighbor != "" || f.counters {
		return nil, exit.Usage(errors.New("--speculate measures one plan; leave out --neighbor and --counters, and " +
			"give one value of --threads"))
	}
	if len(f.threads) == 1 {
		f.session.Threads = f.threads[0]
	}
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, n := range f.gen {
		if n < 2 {
			return nil, exit.Usage(errors.New("--speculate needs answers of at least 2 tokens; raise -n"))
		}
		row, err := clidrafts.Replay(ctx, s, accept, f.batch, n, f.reps)
		if err != nil {
			return nil, err
		}
		rows = append(rows, *row)
	}
	return rows, nil
}
