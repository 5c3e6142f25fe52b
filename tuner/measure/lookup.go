package measure

import (
	"context"
	"time"

	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/tuner/search"
)

// lookupRows is how many rows are looked up for one sample.
const lookupRows = 64

// TimeLookup is the seconds in which one worker looks up a row of a model's embedding of a type,
// sampled for `least`.
func TimeLookup(ctx context.Context, m *model.Model, typ gguf.Type, least time.Duration) (float64, error) {
	l := exec.NewLookup(m, typ)
	s, err := search.Limit{MinReps: 3, MaxReps: 2000, Time: least}.Repeat(func() (float64, error) {
		began := time.Now()
		for i := range lookupRows {
			if err := l.Row(i, i); err != nil {
				return 0, err
			}
		}
		return time.Since(began).Seconds() / lookupRows, context.Cause(ctx)
	})
	return s.Fast(), err
}
