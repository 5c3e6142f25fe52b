package show

import (
	"slices"
	"testing"
	"time"
)

// TestByteLines checks that each tenth has one line, with the rate since the start of this process.
func TestByteLines(t *testing.T) {
	var got []string
	clock := time.Unix(0, 0)
	l := &byteLines{what: "m.gguf", print: func(line string) { got = append(got, line) },
		now: func() time.Time { return clock }}
	const mib = 1 << 20
	for _, done := range []int64{12 * mib, 13 * mib, 22 * mib, 23 * mib, 57 * mib, 100 * mib} {
		l.update(done, 100*mib)
		clock = clock.Add(time.Second)
	}
	l.update(5, -1)
	want := []string{"m.gguf: 10 % of 100.0 MiB", "m.gguf: 20 % of 100.0 MiB, 5.0 MiB/s",
		"m.gguf: 50 % of 100.0 MiB, 11.2 MiB/s", "m.gguf: 100 % of 100.0 MiB, 17.6 MiB/s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
