package jinja

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sandwich/runtime/jinja/internal/object"
)

// TestStrftime compares conversions with the output of strftime in C and in Python.
func TestStrftime(t *testing.T) {
	berlin := time.FixedZone("CEST", 2*60*60)
	for _, c := range []struct {
		format string
		now    time.Time
		want   string
	}{
		{"%H:%M %Z", time.Date(2025, 3, 14, 15, 9, 26, 0, time.UTC), "15:09 UTC"},
		{"%Z%z", time.Date(2025, 7, 1, 0, 0, 0, 0, berlin), "CEST+0200"},
		{"%-H:%-M:%-S %-I %-d %-m %-j", time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC), "0:0:0 12 2 1 2"},
		{"%G-W%V-%u %g %U %W %w", time.Date(2024, 12, 30, 0, 0, 0, 0, time.UTC), "2025-W01-1 25 52 53 1"},
		{"%U %W %w %u", time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC), "01 00 0 7"},
		{"%C %k %l %P %r", time.Date(2025, 3, 14, 0, 9, 26, 0, time.UTC), "20  0 12 am 12:09:26 AM"},
		{"%f %s%n%t%%", time.Unix(1700000000, 42000).UTC(), "000042 1700000000\n\t%"},
		{"%-y %-b", time.Date(2005, 5, 5, 0, 0, 0, 0, time.UTC), "5 May"},
		{"%", time.Time{}, ""},
	} {
		tmpl, err := Parse("{{ strftime_now(format) }}")
		if err != nil {
			t.Fatal(err)
		}
		vars := fromJSON(t, []byte(fmt.Sprintf("{%q: %q}", "format", c.format))).(*object.Dict)
		got, err := tmpl.Render(context.Background(), vars, c.now, ample)
		if got.Plain != c.want || err != nil {
			t.Errorf("%s of %v: %q %v, want %q", c.format, c.now, got.Plain, err, c.want)
		}
	}
}
