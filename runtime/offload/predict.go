package offload

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/model"
)

// Limits of the time that a segment may take before the device counts as lost. Devices of a desktop
// are reset by their drivers after two seconds, and a device that serves other programs too may be
// late by a multiple of the prediction.
const (
	firstTimeout = time.Minute     // for segments of unknown duration
	leastTimeout = 2 * time.Second // for others, in addition to patience times the prediction
	patience     = 20
)

// predictor predicts the time of segments from those that ended. Ops count by their work per row;
// the time per unit of work is kept for each power of two of rows, since few rows are bound by
// memory and many by arithmetic.
type predictor struct {
	work    []float64     // by op, positive
	least   time.Duration // of limit, once a time is known
	perUnit [32]float64
}

func newPredictor(m *model.Model) *predictor {
	p := &predictor{}
	for i := range m.Ops {
		work := float64(m.Dims.Hidden)
		for _, w := range m.Ops[i].W {
			work += float64(m.Weights[w].N) * float64(m.Weights[w].K)
		}
		p.work = append(p.work, work)
	}
	return p
}

// units returns the work of the ops [from, to) for a number of rows.
func (p *predictor) units(from, to, rows int) (sum float64) {
	for _, w := range p.work[from:to] {
		sum += w
	}
	return sum * float64(rows)
}

// predict returns the predicted time of the ops [from, to) of a forward, 0 if nothing is known.
// Without forwards of that many rows it uses those of the nearest number.
func (p *predictor) predict(from, to, rows int) time.Duration {
	at := bits.Len(uint(rows))
	for distance := range p.perUnit {
		for _, i := range []int{at - distance, at + distance} {
			if i >= 0 && i < len(p.perUnit) && p.perUnit[i] > 0 {
				return max(1, time.Duration(p.perUnit[i]*p.units(from, to, rows)))
			}
		}
	}
	return 0
}

// learn takes the time of a segment into the prediction.
func (p *predictor) learn(took time.Duration, from, to, rows int) {
	per, mean := float64(took)/p.units(from, to, rows), &p.perUnit[bits.Len(uint(rows))]
	if *mean == 0 {
		*mean = per
	}
	*mean += (per - *mean) / 8
}

// limit returns the time after which the ops [from, to) of a forward count as hung.
func (p *predictor) limit(from, to, rows int) time.Duration {
	predicted := p.predict(from, to, rows)
	if predicted == 0 {
		return firstTimeout
	}
	return p.least + patience*predicted
}

// await waits for a submission. If it takes longer than the limit, the error wraps device.ErrLost.
func await(ctx context.Context, dev device.Device, t device.Ticket, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := dev.Wait(limited, t)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no result after %v", device.ErrLost, limit.Round(time.Millisecond))
	}
	return err
}
