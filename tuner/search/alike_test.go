package search

import (
	"strings"
	"testing"

	"sandwich/plans"
)

// TestAlike checks that exactly the schedules that run alike have the same name.
func TestAlike(t *testing.T) {
	key := plans.WeightKey{N: 2048, K: 2048, Type: "q8_0"}
	for _, x := range []struct {
		a, b       string
		m, columns int
		alike      bool
	}{
		{"14x16@spread slice 42x128xall", "12x16@spread slice 24x128xall", 23, 2048, true},
		{"14x16@spread slice 42x128xall", "11x16@spread slice 33x128xall", 23, 2048, false},
		{"14x16@spread slice 14x2048xall", "14x16@spread slice 14x4096x2048", 14, 1024, true},
		{"14x16@spread slice 14x512xall", "14x16@spread slice 14x1024xall", 14, 1024, false},
		{"7x32@spread slice 7x32xall ways 3x3", "7x32@spread slice 7x32xall", 70, 1024, true},
		{"7x32@spread slice 7x32xall ways 1x2", "7x32@spread slice 7x32xall", 70, 1024, false},
		{"7x32@spread slice 7x32xall", "7x32@pf2048 slice 7x32xall", 70, 1024, false},
		{"7x32@pf2048 slice 105x32xall", "6x32@pf2048 slice 108x32xall", 100, 1024, false},
	} {
		var named [2]plans.Schedule
		for i, text := range []string{x.a, x.b} {
			text = "avx512/int8/q8_0/" + strings.Replace(text, "@", "/ku32/load/vnni/", 1)
			s, err := plans.ParseSchedule(text)
			if err != nil {
				t.Fatal(err)
			}
			named[i] = Alike(s, key, x.m, x.columns, 2)
			if again := Alike(named[i], key, x.m, x.columns, 2); again != named[i] {
				t.Errorf("%s at m %d: %s, and of that %s", text, x.m, named[i], again)
			}
		}
		if (named[0] == named[1]) != x.alike {
			t.Errorf("%s and %s at m %d: %s and %s", x.a, x.b, x.m, named[0], named[1])
		}
	}
}
