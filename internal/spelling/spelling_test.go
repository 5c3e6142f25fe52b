package spelling

import "testing"

// TestEdits checks distances and that they are symmetric.
func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"stop", "stpo", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3},
		{"temprature", "temperature", 1}, {"é", "e", 1}, {"same", "same", 0},
	} {
		if got := Edits(c.a, c.b); got != c.want || Edits(c.b, c.a) != got {
			t.Errorf("%q to %q: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}
