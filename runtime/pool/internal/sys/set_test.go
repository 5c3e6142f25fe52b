package sys

import "testing"

func TestFormatSet(t *testing.T) {
	for want, in := range map[string][]int{"": nil, "3": {3}, "0-3,8": {0, 1, 2, 3, 8}, "1,3,5-6": {1, 3, 5, 6}} {
		if got := FormatSet(in); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}
