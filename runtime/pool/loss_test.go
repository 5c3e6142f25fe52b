package pool

import (
	"testing"
	"time"
)

// TestOnlyLossesAboveASixteenthPutAtRisk checks that a worker is at risk if another thread takes a
// good part of its CPU, but not by the short interruptions that every machine has.
func TestOnlyLossesAboveASixteenthPutAtRisk(t *testing.T) {
	for _, test := range []struct {
		name         string
		every, taken time.Duration
		within       time.Duration // of the first loss; 0: never
	}{
		{"a tick's work", 4 * time.Millisecond, 20 * time.Microsecond, 0},
		{"a turn a second", time.Second, 7 * time.Millisecond, 0},
		{"a 20th", 80 * time.Millisecond, 4 * time.Millisecond, 0},
		{"half", 8 * time.Millisecond, 4 * time.Millisecond, 40 * time.Millisecond},
		{"a quarter", 16 * time.Millisecond, 4 * time.Millisecond, 80 * time.Millisecond},
		{"nine tenths", 10 * time.Millisecond, 9 * time.Millisecond, 30 * time.Millisecond},
	} {
		w := waiter{pool: &Pool{}, spin: time.Millisecond}
		found := time.Duration(0)
		for now := test.every; now < 20*time.Second && found == 0; now += test.every {
			if w.lost(now, test.taken); w.riskUntil > 0 {
				found = now
			}
		}
		if (found > 0) != (test.within > 0) || found > test.within {
			t.Errorf("%s: at risk after %v, want %v at most (0: never)", test.name, found, test.within)
		}
	}
}

// TestOldLossesDoNotCount checks that losses over a long time without checks count as spread over
// that time, not as one loss.
func TestOldLossesDoNotCount(t *testing.T) {
	w := waiter{pool: &Pool{}, spin: time.Millisecond}
	if w.lost(time.Minute, time.Second); w.riskUntil > 0 {
		t.Error("a second of a minute put the worker at risk")
	}
	if w.lost(time.Minute+50*time.Millisecond, 20*time.Millisecond); w.riskUntil == 0 {
		t.Error("20 ms of 50 did not")
	}
	if n := w.pool.risk.Load(); n != int64(w.riskUntil) {
		t.Errorf("the pool is at risk until %d, its worker until %d", n, w.riskUntil)
	}
	if w.losing > maxLoss {
		t.Errorf("%v are left to drain, more than %v", w.losing, maxLoss)
	}
}
