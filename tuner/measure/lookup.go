package measure

import (
	"context"
	"time"

	"sandwich/runtime/exec"
	"sandwich/runtime/model"
	"sandwich/tuner/search"
)

// lookupRows is how many rows are looked up for one sample.
const lookupRows = 64

// TimeLookup is the seconds in which one worker looks up a row of a model's embedding, sampled for
// `least`; 0 where only a loaded model has the embedding.
func TimeLookup(ctx context.Context, m *model.Model, least time.Duration) (float64, error) {
	l := exec.NewLookup(m, m.Dims.Context)
	if l == nil {
		return 0, nil
	}
	s, err := search.Limit{MinReps: 3, MaxReps: 2000, Time: least}.Repeat(func() (float64, error) {
		began := time.Now()
		for i := range lookupRows {
			if err := l.Row(i*31%m.Dims.Vocab, i); err != nil {
				return 0, err
			}
		}
		return time.Since(began).Seconds() / lookupRows, context.Cause(ctx)
	})
	return s.Fast(), err
}
