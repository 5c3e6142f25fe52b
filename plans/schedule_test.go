package plans

import "testing"

// TestParseSchedule checks that ParseSchedule accepts the output of String and nothing else.
func TestParseSchedule(t *testing.T) {
	for _, text := range []string{
		"avx512/int8/q8_0/7x32/ku32/load/vnni/pf2048 slice 133x512x1024",
		"avx512/f32/f32/14x32/ku4/load/spread slice 140x512xall ways 1x2",
		"avx2/f32/f32/6x16/ku4/load slice 12x32x96 ways 2x1 packed widened",
	} {
		s, err := ParseSchedule(text)
		if err != nil || s.String() != text {
			t.Errorf("%q is read as %q: %v", text, s, err)
		}
	}
	for _, text := range []string{"", "avx512/f32/f32/14x32/ku4/load slice", "x slice 1x1xall",
		"avx512/f32/f32/14x32/ku4/load slice 1x1", "avx512/f32/f32/14x32/ku4/load slice 1x1xall ways",
		"avx512/f32/f32/14x32/ku4/load slice 1x1xall quickly"} {
		if s, err := ParseSchedule(text); err == nil {
			t.Errorf("%q is read as %q", text, s)
		}
	}
}
