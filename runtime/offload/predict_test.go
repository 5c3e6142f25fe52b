package offload

import (
	"testing"
	"time"
)

// TestPredictor checks that predictions follow the work of ops and the number of rows, and that
// limits follow predictions.
func TestPredictor(t *testing.T) {
	p := &predictor{work: []float64{1, 10, 100}, least: leastTimeout}
	if d := p.limit(0, 3, 8); d != firstTimeout {
		t.Errorf("the limit of a segment of unknown duration is %v", d)
	}
	p.learn(11*time.Millisecond, 0, 2, 64)
	for _, c := range []struct {
		from, to, rows int
		want           time.Duration
	}{
		{0, 2, 64, 11 * time.Millisecond}, {0, 1, 64, time.Millisecond}, {2, 3, 64, 100 * time.Millisecond},
		{0, 1, 128, 2 * time.Millisecond}, {0, 1, 1, time.Second / 64000},
		{0, 3, 1 << 20, 111 << 14 * time.Millisecond},
	} {
		if got := p.predict(c.from, c.to, c.rows); got < c.want-1 || got > c.want+1 {
			t.Errorf("ops %d to %d of %d rows: %v, want %v", c.from, c.to, c.rows, got, c.want)
		}
	}
	p.learn(time.Millisecond, 0, 1, 1) // decode batches are bound by memory
	if got := p.predict(1, 2, 1); got != 10*time.Millisecond {
		t.Errorf("a decode batch: %v", got)
	}
	if got := p.predict(0, 2, 64); got != 11*time.Millisecond {
		t.Errorf("a chunk after a decode batch: %v", got)
	}
	if got := p.limit(0, 1, 64); got != leastTimeout+patience*time.Millisecond || got >= 3*time.Second {
		t.Errorf("the limit of a short segment is %v", got)
	}
	p.learn(19*time.Millisecond, 0, 2, 64)
	if got := p.predict(0, 2, 64); got != 12*time.Millisecond {
		t.Errorf("after a slower segment: %v", got)
	}
}
