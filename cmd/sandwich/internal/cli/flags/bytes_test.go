package flags

import "testing"

// TestBytesFlag checks that sizes are read with their unit, that 0 differs from a flag that was not
// given, and that invalid sizes are rejected.
func TestBytesFlag(t *testing.T) {
	for text, want := range map[string]int64{"0": -1, "0GiB": -1, "512MiB": 512 << 20, "2 gib": 2 << 30, "1.5KB": 1500,
		"7B": 7} {
		var b bytesValue
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%q is %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "-1GiB", "12", "1e40TiB", "GiB", "NaNGB", "4 elephants", "0.1B"} {
		var b bytesValue
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, b)
		}
	}
}
