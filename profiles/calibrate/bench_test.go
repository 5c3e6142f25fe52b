package calibrate

import (
	"strings"
	"testing"
	"time"
)

// TestOneWorkerWithOthers checks that time in which other threads had a worker's PU is not part of
// its sample, that the profile notes a large share, and that unknown times count as none.
func TestOneWorkerWithOthers(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		wall, used time.Duration
		rate       float64
		note       string
	}{
		{10 * ms, 10 * ms, 1000, ""},
		{10 * ms, 4 * ms, 2500, "for 40 % of the time"},
		{10 * ms, 0, 1000, ""},
		{10 * ms, 11 * ms, 1000, ""},
	} {
		b := &bench{}
		from := time.Now()
		done, seconds := b.ofOne(&stamp{from: from, to: from.Add(c.wall), used: c.used, done: 10})
		if got := done / seconds; got != c.rate {
			t.Errorf("%s of %s: %g a second, want %g", c.used, c.wall, got, c.rate)
		}
		note := strings.Join(b.sharedNote(), "")
		if c.note == "" && note != "" || !strings.Contains(note, c.note) {
			t.Errorf("%s of %s: %q", c.used, c.wall, note)
		}
	}
	if note := (&bench{}).sharedNote(); note != nil {
		t.Errorf("without a sample: %q", note)
	}
}
