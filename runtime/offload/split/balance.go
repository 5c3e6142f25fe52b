// Package split chooses how a prompt is divided between a device and the cores.
package split

import (
	"cmp"
	"time"

	"sandwich/runtime/kvcache"
)

// Balance chooses how many rows of a chunk the device computes in a wavefront, so that both sides
// end together by their measured speeds. It is not safe for concurrent use. The zero Balance
// divides no chunk until the speed of the device is known.
type Balance struct {
	device float64 // nanoseconds per row; 0: unknown
	factor float64 // of the cores' time by their predicted time; 0: unknown
}

const (
	// A chunk is divided if that is predicted to take at most this share of the time of the device
	// alone.
	divideBelow = 0.95
	// unknownFactor replaces an unknown factor: predictions from ceilings are too short, and the
	// cores also decode.
	unknownFactor = 2
)

// Rows returns the rows that the device computes of n rows after pos positions, 0 if it is to
// compute all of them. cores is the predicted time of the chunk on the cores.
func (b *Balance) Rows(pos, n int, cores time.Duration) (rows int) {
	row := float64(cores) / float64(n) * cmp.Or(b.factor, unknownFactor)
	best := divideBelow * b.device * float64(n)
	for end := (pos/kvcache.BlockTokens + 1) * kvcache.BlockTokens; end < pos+n; end += kvcache.BlockTokens {
		m := end - pos
		if t := max(b.device*float64(m), row*float64(n-m)); t < best {
			best, rows = t, m
		}
	}
	return rows
}

// LearnDevice updates the speed of the device by the time of rows.
func (b *Balance) LearnDevice(rows int, took time.Duration) {
	b.device = blend(b.device, float64(took)/float64(rows))
}

// LearnCores updates the speed of the cores by the time of their part, with other forwards in
// between, and its predicted time. Both are 0 if the cores had no part; slow cores are then assumed
// to become faster again.
func (b *Balance) LearnCores(took, predicted time.Duration) {
	if predicted <= 0 {
		if b.factor > unknownFactor {
			b.factor += (unknownFactor - b.factor) / 32
		}
		return
	}
	b.factor = blend(b.factor, float64(took)/float64(predicted))
}

// blend returns the moving mean of a figure, which is 0 if none was measured. It follows longer
// times faster.
func blend(mean, x float64) float64 {
	switch {
	case mean == 0:
		return x
	case x > mean:
		return mean + (x-mean)/2
	}
	return mean + (x-mean)/8
}
