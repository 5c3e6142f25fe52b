package split

import (
	"testing"
	"time"
)

// TestBalance checks the rows of the device by the speeds of both sides.
func TestBalance(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		pos, n int
		device time.Duration // of a row; 0: unknown
		cores  time.Duration // of a row by prediction; negative: never measured
		want   int
	}{
		{"unknown", 0, 512, 0, ms, 0},
		{"equal", 0, 512, ms, ms, 256},
		{"device thrice as fast", 0, 512, ms, 3 * ms, 384},
		{"device much faster", 0, 512, ms, 100 * ms, 0},
		{"cores much faster", 0, 512, 100 * ms, ms, 64},
		{"cores of unknown speed", 0, 512, ms, -ms, 320},
		{"a short chunk", 0, 64, ms, ms, 0},
		{"within a block", 32, 512, ms, ms, 224},
		{"after a chunk", 512, 512, ms, ms, 256},
	} {
		var b Balance
		if c.device > 0 {
			b.LearnDevice(10, 10*c.device)
		}
		if c.cores > 0 {
			b.LearnCores(ms, ms)
		}
		if got := b.Rows(c.pos, c.n, time.Duration(c.n)*c.cores.Abs()); got != c.want {
			t.Errorf("%s: %d rows on the device, want %d", c.name, got, c.want)
		}
	}
	var b Balance
	b.LearnDevice(1, ms)
	before := b.Rows(0, 512, 512*ms)
	b.LearnCores(2000*ms, 500*ms) // decode batches ran in between
	busy := b.Rows(0, 512, 512*ms)
	if busy <= before {
		t.Errorf("%d rows on the device while the cores decode, %d before", busy, before)
	}
	for range 200 {
		b.LearnCores(0, 0)
	}
	if got := b.Rows(0, 512, 512*ms); got >= busy {
		t.Errorf("%d rows on the device after the cores were idle, %d while they decoded", got, busy)
	}
}

// TestBalanceThrottled checks that the rows of a device that becomes slower pass to the cores, and
// return when it is fast again.
func TestBalanceThrottled(t *testing.T) {
	const ms = time.Millisecond
	var b Balance
	b.LearnCores(ms, ms)
	rows := func(device time.Duration) int {
		for range 50 {
			b.LearnDevice(100, 100*device)
		}
		return b.Rows(0, 512, 512*ms)
	}
	fast, slow, again := rows(ms), rows(4*ms), rows(ms)
	if fast != 256 || slow >= fast/2 || again != fast {
		t.Errorf("%d rows, %d while the device is four times as slow, then %d", fast, slow, again)
	}
}
