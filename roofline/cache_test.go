package roofline

import (
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
)

// TestCaches checks that a core has its own caches and its part of a shared one, and that unknown
// sizes are marked as assumed.
func TestCaches(t *testing.T) {
	all := topotree.CPURange(0, 5)
	d := topotree.Description{Source: "test", Arch: "x86_64", Online: all, Levels: []topotree.LevelData{
		{Kind: topotree.KindL2, Bytes: 2 << 20, Sets: []topotree.CPUSet{cpus(0), cpus(1, 2, 3, 4)}},
		{Kind: topotree.KindCore, Sets: []topotree.CPUSet{cpus(0), cpus(1), cpus(2), cpus(3, 4), cpus(5)}}}}
	machine, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(profiles.New(machine, profiles.Identity{L1D: 48 << 10}))
	for name, c := range map[string]struct {
		got  Answer
		want float64
		told bool
	}{
		"L1":                {m.L1(), 48 << 10, true},
		"its own L2":        {m.L2(0), 2 << 20, true},
		"a third of one":    {m.L2(3), (2 << 20) / 3, true},
		"no L2":             {m.L2(5), 512 << 10, false},
		"no such PU":        {m.L2(-1), 512 << 10, false},
		"no host":           {NewMachine(&profiles.Profile{}).L1(), 32 << 10, false},
		"no machine":        {NewMachine(&profiles.Profile{}).L2(0), 512 << 10, false},
		"an impossible one": {NewMachine(profiles.New(machine, profiles.Identity{L1D: 1 << 40})).L1(), 1 << 20, true},
	} {
		if c.got.Value != float64(int(c.want)) || c.got.Assumed == c.told || !c.got.Known() {
			t.Errorf("%s: %+v, want %g", name, c.got, c.want)
		}
	}
}
