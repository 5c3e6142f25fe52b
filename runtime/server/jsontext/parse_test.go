package jsontext

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseWhole(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "8": 8, "-8": -8, "8.0": 8, "8.000": 8, "-8.0": -8, "1e1": 10, "1E+1": 10, "0.8e1": 8,
		"80e-1": 8, "1.25e2": 125, "0.0": 0, "0e999999999999999999999": 0, "0.000e-5": 0, "-0.0e9": 0,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		"9223372036854775807.0": math.MaxInt64, "9.223372036854775807e18": math.MaxInt64,
		"1" + strings.Repeat("0", 30) + "e-30": 1, "0." + strings.Repeat("0", 30) + "1e31": 1,
	} {
		if got, ok := ParseInteger(text); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"8.5", "1e-1", "0.1e0", "12e-1", "9223372036854775808", "1e19", "-1e19", "1e999999999", "1e-999999999",
		"1e99999999999999999999999", "-1e99999999999999999999999", "1e-99999999999999999999999",
		"", "-", ".", "e", "1e", "1e+", "+1", "0x1", "1_0", `"8"`, "true", "[8]", "{}", "1.0.0", " 1", "--1",
	} {
		if got, ok := ParseInteger(text); ok {
			t.Errorf("%q: %d, want none", text, got)
		}
	}
}

// TestParseWholeTime checks that long digits and exponents do not take long.
func TestParseWholeTime(t *testing.T) {
	const digits = 4 << 20
	begun := time.Now()
	for _, text := range []string{
		"1" + strings.Repeat("0", digits), "0." + strings.Repeat("0", digits) + "1",
		"1e" + strings.Repeat("9", digits), "1e-" + strings.Repeat("9", digits), strings.Repeat("9", digits) + ".5",
	} {
		if got, ok := ParseInteger(text); ok {
			t.Errorf("%.20s: %d, want none", text, got)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
