package sysfs

import (
	"testing"

	"sandwich/runtime/refdata"
	"sandwich/topotree/internal/topotest"
)

func TestSysfsFacts(t *testing.T) {
	dir := refdata.Path(t, "topologies")
	for name, f := range topotest.ReadFacts(t, dir, "facts.json") {
		if f.Kind != "sysfs" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := Read(topotest.DumpFS(t, dir, f.Input, f.Folder))
			if err != nil {
				t.Fatal(err) // machines of tier B may be refused, and none needs to be
			}
			topotest.CheckFacts(t, m, f)
			topotest.CheckDescription(t, m)
			if got := m.Online.Minus(m.Allowed).String(); got != f.NotAllowed {
				t.Errorf("not allowed = %q, want %q", got, f.NotAllowed)
			}
			if view, ok := f.Views["allowed"]; ok {
				u, err := m.Usable()
				if err != nil {
					t.Fatal(err)
				}
				if u.CPUs().String() != view.Sets.Machine {
					t.Errorf("usable = %s, want %s", u.CPUs(), view.Sets.Machine)
				}
			}
		})
	}
}
