package message

import "testing"

func TestOr(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"a"}, "a"}, {[]string{"b", "a"}, "a or b"}, {[]string{"c", "a", "b"}, "a, b or c"},
	} {
		if got := Or(c.names); got != c.want {
			t.Errorf("Or(%q) = %q, want %q", c.names, got, c.want)
		}
	}
}
