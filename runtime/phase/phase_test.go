package phase

import "testing"

func TestNames(t *testing.T) {
	for _, p := range All {
		if got, err := Parse(p.String()); err != nil || got != p {
			t.Errorf("Parse(%q) = %v, %v; want %v", p, got, err, p)
		}
	}
	for _, name := range []string{"", "Prefill", "prefill ", "phase 2", "embed"} {
		if p, err := Parse(name); err == nil {
			t.Errorf("Parse(%q) = %v; want an error", name, p)
		}
	}
	if got := Phase(Count).String(); got != "phase 2" {
		t.Errorf("an unknown phase is %q; want %q", got, "phase 2")
	}
}
