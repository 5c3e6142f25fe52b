package offload

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Limits of the time that a segment may take before the device counts as lost. Devices of a desktop
// are reset by their drivers after two seconds, and a device that serves other programs too may be
// late by a multiple of the prediction.
const (
	firstTimeout = time.Minute     // for segments of unknown duration
	minTimeout   = 2 * time.Second // for others, in addition to patience times the prediction
	patience     = 20
)

// Kinds of work whose time per unit differs.
const (
	rowWork       = iota // products, and ops of single rows
	attentionWork        // attention, whose work grows with the positions before a row
	workKinds
)

// predictor predicts the time of segments from those that ended. The time per unit of work is kept
// by kind and for each power of two of rows, since few rows are bound by memory and many by
// arithmetic.
type predictor struct {
	work    []float64     // by op: of a row, or of a row and a position that it attends to
	kind    []int         // of work, by op
	windows []int         // of attention, by op; 0: none
	least   time.Duration // of limit, once a time is known
	perUnit [workKinds][32]float64
}

func newPredictor(m *model.Model) *predictor {
	p := &predictor{}
	for i := range m.Ops {
		op, kind, window := &m.Ops[i], rowWork, 0
		work := float64(m.Dims.Hidden)
		for _, w := range op.W {
			work += float64(m.Weights[w].N) * float64(m.Weights[w].K)
		}
		if op.Kind == model.OpAttention {
			work, kind, window = float64(m.Dims.Heads)*float64(m.Dims.HeadDim), attentionWork, op.Attn.Window
		}
		p.work, p.kind, p.windows = append(p.work, work), append(p.kind, kind), append(p.windows, window)
	}
	return p
}

// units returns the work of the ops [from, to) for a batch by kind.
func (p *predictor) units(from, to int, b *kvcache.Batch) (sum [workKinds]float64) {
	rows, window, positions := float64(b.Rows()), -1, 0.0
	for i := from; i < to; i++ {
		if p.kind[i] != attentionWork {
			sum[p.kind[i]] += p.work[i] * rows
			continue
		}
		if p.windows[i] != window {
			window = p.windows[i]
			positions = attended(b, window)
		}
		sum[attentionWork] += p.work[i] * positions
	}
	return sum
}

// fit returns the op before which a segment ends that begins with op `from`: after as many ops as
// take no longer than a bound by prediction, at least one, but not after `end`.
func (p *predictor) fit(from, end int, b *kvcache.Batch, bound time.Duration) int {
	var rates, sum [workKinds]float64
	for kind := range rates {
		rates[kind] = p.rate(kind, b)
	}
	for to := from; to < end; to++ {
		predicted := 0.0
		for kind, units := range p.units(to, to+1, b) {
			sum[kind] += units
			if sum[kind] > 0 && rates[kind] == 0 {
				return max(to, from+1)
			}
			predicted += sum[kind] * rates[kind]
		}
		if time.Duration(predicted) > bound {
			return max(to, from+1)
		}
	}
	return end
}

// attended returns the positions that the rows of a batch attend to, summed over the rows.
func attended(b *kvcache.Batch, window int) (sum float64) {
	for i := range b.Spans {
		s := &b.Spans[i]
		mean := float64(s.Pos) + float64(s.Rows+1)/2
		if window > 0 {
			mean = min(mean, float64(window))
		}
		sum += mean * float64(s.Rows)
	}
	return sum
}

// rate returns the time per unit of a kind of work in a batch, 0 if none is known. Without batches
// of that many rows it returns that of the nearest number.
func (p *predictor) rate(kind int, b *kvcache.Batch) float64 {
	list, at := &p.perUnit[kind], bits.Len(uint(b.Rows()))
	for distance := range list {
		for _, i := range []int{at - distance, at + distance} {
			if i >= 0 && i < len(list) && list[i] > 0 {
				return list[i]
			}
		}
	}
	return 0
}

// predict returns the predicted time of the ops [from, to) of a forward, 0 if that of a part is not
// known.
func (p *predictor) predict(from, to int, b *kvcache.Batch) time.Duration {
	sum := 0.0
	for kind, units := range p.units(from, to, b) {
		if units == 0 {
			continue
		}
		rate := p.rate(kind, b)
		if rate == 0 {
			return 0
		}
		sum += rate * units
	}
	return max(1, time.Duration(sum))
}

// learn takes the time of a segment into the prediction. Of a segment with both kinds of work, each
// takes the part of the time that was predicted, or what the other leaves.
func (p *predictor) learn(took time.Duration, from, to int, b *kvcache.Batch) {
	units := p.units(from, to, b)
	var parts [workKinds]float64 // predicted
	known, unknown := 0.0, 0.0
	for kind := range units {
		if parts[kind] = p.rate(kind, b) * units[kind]; parts[kind] > 0 {
			known += parts[kind]
		} else {
			unknown += units[kind]
		}
	}
	for kind := range units {
		if units[kind] == 0 {
			continue
		}
		per := 0.0
		switch {
		case parts[kind] == 0:
			per = max(1, float64(took)-known) / unknown
		case unknown == 0:
			per = float64(took) * parts[kind] / known / units[kind]
		default:
			per = min(float64(took)*parts[kind]/known, parts[kind]) / units[kind]
		}
		mean := &p.perUnit[kind][bits.Len(uint(b.Rows()))]
		if *mean == 0 {
			*mean = per
		}
		*mean += (per - *mean) / 8
	}
}

// limit returns the time after which the ops [from, to) of a forward count as hung.
func (p *predictor) limit(from, to int, b *kvcache.Batch) time.Duration {
	predicted := p.predict(from, to, b)
	if predicted == 0 {
		return firstTimeout
	}
	return p.least + patience*predicted
}

// awaitParts is the number of parts of a limit that await waits for one after the other.
const awaitParts = 8

// await waits for a submission. If it takes longer than the limit, the error wraps device.ErrLost.
// Time for which this process is stopped, as by a hypervisor, uses up one part of the limit,
// however long it is.
func await(ctx context.Context, dev device.Device, t device.Ticket, limit time.Duration) error {
	for range awaitParts {
		limited, cancel := context.WithTimeout(ctx, limit/awaitParts)
		err := dev.Wait(limited, t)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%w: no result after %v", device.ErrLost, limit.Round(time.Millisecond))
}
