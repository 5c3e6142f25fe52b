package calibrate

import (
	"strings"
	"testing"
	"time"
)

// TestOneWorkerBesideOthers: the time that others had a worker's PU is no part of its sample, and
// the profile says so where it was much; what the system does not tell is taken for none.
func TestOneWorkerBesideOthers(t *testing.T) {
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
