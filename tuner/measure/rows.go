package measure

import (
	"context"
	"time"

	"sandwich/runtime/exec"
	"sandwich/tuner/search"
)

// rowSample is how long a sample of what ops do to rows takes at least.
const rowSample = 20 * time.Microsecond

// TimeRows is the seconds in which one worker does an op's work for a row, sampled for `least`.
func TimeRows(ctx context.Context, w exec.RowWork, least time.Duration) (float64, error) {
	s, err := search.Limit{MinReps: 3, MaxReps: 2000, Time: least}.Repeat(func() (float64, error) {
		began, rows := time.Now(), 0
		for {
			if err := w.Run(); err != nil {
				return 0, err
			}
			rows += w.Rows
			if took := time.Since(began); took >= rowSample {
				return took.Seconds() / float64(rows), context.Cause(ctx)
			}
		}
	})
	return s.Fast(), err
}
