package offload

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/kvcache"
)

// rowsAt returns a batch of rows of one sequence after so many positions.
func rowsAt(rows, pos int) *kvcache.Batch {
	return &kvcache.Batch{Tokens: make([]int32, rows), Spans: []kvcache.Span{{Rows: rows, Pos: pos}}}
}

// assumeFast lets the runner predict that every op takes a nanosecond.
func (g *rig) assumeFast() {
	for op := range g.runner.times.work {
		g.runner.times.learn(1, op, op+1, rowsAt(64, 0))
	}
}

// TestPredictor checks that predictions follow the work of ops and the number of rows, and that
// limits follow predictions.
func TestPredictor(t *testing.T) {
	p := &predictor{work: []float64{1, 10, 100}, kind: make([]int, 3), windows: make([]int, 3), least: minTimeout}
	if d := p.limit(0, 3, rowsAt(8, 0)); d != firstTimeout {
		t.Errorf("the limit of a segment of unknown duration is %v", d)
	}
	p.learn(11*time.Millisecond, 0, 2, rowsAt(64, 0))
	for _, c := range []struct {
		from, to, rows int
		want           time.Duration
	}{
		{0, 2, 64, 11 * time.Millisecond}, {0, 1, 64, time.Millisecond}, {2, 3, 64, 100 * time.Millisecond},
		{0, 1, 128, 2 * time.Millisecond}, {0, 1, 1, time.Second / 64000},
		{0, 3, 1 << 20, 111 << 14 * time.Millisecond},
	} {
		if got := p.predict(c.from, c.to, rowsAt(c.rows, 500)); got < c.want-1 || got > c.want+1 {
			t.Errorf("ops %d to %d of %d rows: %v, want %v", c.from, c.to, c.rows, got, c.want)
		}
	}
	p.learn(time.Millisecond, 0, 1, rowsAt(1, 0)) // decode batches are bound by memory
	if got := p.predict(1, 2, rowsAt(1, 0)); got != 10*time.Millisecond {
		t.Errorf("a decode batch: %v", got)
	}
	if got := p.predict(0, 2, rowsAt(64, 0)); got != 11*time.Millisecond {
		t.Errorf("a chunk after a decode batch: %v", got)
	}
	if got := p.limit(0, 1, rowsAt(64, 0)); got != minTimeout+patience*time.Millisecond || got >= 3*time.Second {
		t.Errorf("the limit of a short segment is %v", got)
	}
	p.learn(19*time.Millisecond, 0, 2, rowsAt(64, 0))
	if got := p.predict(0, 2, rowsAt(64, 0)); got != 12*time.Millisecond {
		t.Errorf("after a slower segment: %v", got)
	}
}

// TestPredictorAttention checks that the time of attention follows the positions before the rows,
// up to a window, and is learned separately from that of products.
func TestPredictorAttention(t *testing.T) {
	p := &predictor{work: []float64{100, 1, 1}, kind: []int{rowWork, attentionWork, attentionWork},
		windows: []int{0, 0, 1000}, least: minTimeout}
	const ms = time.Millisecond
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want*99/100 || got > want*101/100 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	p.learn(10*ms, 0, 1, rowsAt(64, 0))
	if got := p.limit(0, 2, rowsAt(64, 0)); got != firstTimeout {
		t.Errorf("the limit of a segment with attention of unknown duration is %v", got)
	}
	p.learn(ms, 1, 2, rowsAt(64, 0)) // 32.5 positions in the mean
	near("attention", p.predict(1, 2, rowsAt(64, 0)), ms)
	near("attention after 3250 positions", p.predict(1, 2, rowsAt(64, 3250)), 101*ms)
	near("in a window of 1000", p.predict(2, 3, rowsAt(64, 3250)), 1000*ms*2/65)
	near("with a product", p.predict(0, 2, rowsAt(64, 3250)), 111*ms)
	two := &kvcache.Batch{Tokens: make([]int32, 128), Spans: []kvcache.Span{{Rows: 64}, {Rows: 64, Pos: 3250}}}
	near("of two sequences", p.predict(1, 2, two), 102*ms)
	for range 100 { // both parts become twice as slow
		p.learn(222*ms, 0, 2, rowsAt(64, 3250))
	}
	near("a slower product", p.predict(0, 1, rowsAt(64, 0)), 20*ms)
	near("slower attention", p.predict(1, 2, rowsAt(64, 0)), 2*ms)
	q := &predictor{work: p.work, kind: p.kind, windows: p.windows}
	q.learn(11*ms, 0, 2, rowsAt(64, 0)) // parts of unknown durations
	if got := q.predict(0, 2, rowsAt(64, 0)); got < 10*ms || got > 12*ms {
		t.Errorf("a segment with both parts: %v", got)
	}
}

// late is a device whose submission has not ended in the first waits.
type late struct {
	device.Device
	waits int
}

func (d *late) Wait(ctx context.Context, _ device.Ticket) error {
	if d.waits--; d.waits < 0 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAwait checks that a limit that passes while the process is stopped, and so ends one wait,
// does not lose the device, and that a device that never reports is lost.
func TestAwait(t *testing.T) {
	for waits, lost := range map[int]bool{0: false, 1: false, awaitParts - 1: false, awaitParts: true} {
		err := await(t.Context(), &late{waits: waits}, 1, 1)
		if errors.Is(err, device.ErrLost) != lost || !lost && err != nil {
			t.Errorf("%d waits without a result: %v", waits, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := await(ctx, &late{waits: 99}, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
}

// TestFit compares the ends of segments with predictions of each length.
func TestFit(t *testing.T) {
	p := &predictor{work: []float64{1, 10, 3, 2, 1, 10, 3, 2}, kind: []int{0, 0, 1, 0, 0, 0, 1, 0},
		windows: []int{0, 0, 5, 0, 0, 0, 9, 0}, least: minTimeout}
	b := rowsAt(4, 30)
	compare := func(what string) {
		t.Helper()
		for from := range p.work {
			for end := from + 1; end <= len(p.work); end++ {
				for bound := time.Duration(1); bound < time.Second; bound = 3*bound + 7 {
					want := from + 1
					for want < end {
						if d := p.predict(from, want+1, b); d == 0 || d > bound {
							break
						}
						want++
					}
					if got := p.fit(from, end, b, bound); got != want {
						t.Errorf("%s: ops %d to %d within %v: %d, want %d", what, from, end, bound, got, want)
					}
				}
			}
		}
	}
	compare("nothing is known")
	p.learn(11*time.Microsecond, 0, 2, b)
	compare("attention is not known")
	p.learn(2*time.Microsecond, 2, 3, b)
	compare("all is known")
}
