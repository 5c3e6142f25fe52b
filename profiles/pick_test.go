package profiles

import (
	"slices"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

func machineOf(t *testing.T, text string, quota float64) *Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	m.QuotaCPUs = quota
	return New(m, Identity{})
}

// TestPickPUs chooses PUs by the load of other processes.
func TestPickPUs(t *testing.T) {
	const nodes = "numa:2 l3:2 core:4" // PUs 0-7 and 8-15, an L3 for each four
	for _, c := range []struct {
		name    string
		machine string
		quota   float64
		n       int
		load    PULoad
		want    []int
	}{
		{"nothing runs", "core:2", 0, 1, nil, []int{0}},
		{"the first PU is busy", "core:2", 0, 1, PULoad{0: 1}, []int{1}},
		{"the first PU is held", "core:2", 0, 1, PULoad{0: 1.02}, []int{1}},
		{"a little is running", "core:2", 0, 1, PULoad{0: 0.2}, []int{0}},
		{"all are busy, one less", "core:4", 0, 1, PULoad{0: 1, 1: 1, 2: 0.6, 3: 1}, []int{2}},
		{"all are held, one is idle", "core:3", 0, 1, PULoad{0: 2, 1: 1, 2: 2}, []int{1}},
		{"a quota of one", "core:4", 1, 0, PULoad{0: 1, 1: 0.9}, []int{2}},
		{"a quota of two and more threads", "core:4", 2, 4, PULoad{0: 1}, []int{1, 2}},
		{"as many threads as cores", "core:2 pu:2", 0, 2, PULoad{0: 1}, []int{0, 2}},
		{"one worker a core", "core:2 pu:2", 0, 0, PULoad{0: 1}, []int{0, 2}},
		{"the sibling of the first PU is busy", "core:2 pu:2", 0, 1, PULoad{1: 1}, []int{2}},
		{"more threads than cores", "core:2 pu:2", 0, 3, PULoad{0: 1}, []int{1, 2, 3}},
		{"another cache has room", nodes, 0, 4, PULoad{0: 1}, []int{4, 5, 6, 7}},
		{"the rest of a cache is enough", nodes, 0, 3, PULoad{0: 1}, []int{1, 2, 3}},
		{"another node has room", nodes, 0, 8, PULoad{5: 1}, []int{8, 9, 10, 11, 12, 13, 14, 15}},
		{"no part has room", nodes, 0, 15, PULoad{3: 1}, []int{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{"the busy PU is not among the first", nodes, 0, 4, PULoad{9: 1}, []int{0, 1, 2, 3}},
	} {
		if got := machineOf(t, c.machine, c.quota).PickPUs(c.n, c.load); !slices.Equal(got.Slice(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPickPUsOfIdleMachine checks that without load, and with load on PUs that are not needed, the
// PUs are those of FirstPUs, on every built-in machine.
func TestPickPUsOfIdleMachine(t *testing.T) {
	for _, name := range BuiltinNames() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		cores := p.CorePUs()
		if got := p.PickPUs(0, nil); !got.Equal(cores) {
			t.Errorf("%s: one worker a core is on %v, want %v", name, got, cores)
		}
		for n := 1; n <= cores.Count(); n++ {
			first := p.FirstPUs(n)
			load := PULoad{}
			for pu := range cores.All() {
				if !first.Contains(pu) {
					load[pu] = 1
				}
			}
			for _, l := range []PULoad{nil, load} {
				if got := p.PickPUs(n, l); !got.Equal(first) {
					t.Fatalf("%s: %d workers are on %v, want %v", name, n, got, first)
				}
			}
		}
	}
}

// TestLeavesChoice checks whether workers could be on different PUs.
func TestLeavesChoice(t *testing.T) {
	for _, c := range []struct {
		machine string
		quota   float64
		n       int
		want    bool
	}{
		{"core:4", 0, 0, false}, {"core:4", 0, 4, false}, {"core:4", 0, 3, true}, {"core:4", 1, 0, true},
		{"core:4", 3.5, 0, false}, {"core:4", 2, 4, true}, {"core:1", 0.5, 1, false}, {"core:2 pu:2", 0, 2, false},
		{"core:2 pu:2", 0, 1, true}, {"core:2 pu:2", 0, 3, true}, {"core:2 pu:2", 0, 4, false},
	} {
		if got := machineOf(t, c.machine, c.quota).LeavesChoice(c.n); got != c.want {
			t.Errorf("%s, quota %g, %d workers: %v, want %v", c.machine, c.quota, c.n, got, c.want)
		}
	}
}

// TestSparePU finds where a worker moves to.
func TestSparePU(t *testing.T) {
	const nodes = "numa:2 l3:2 core:4"
	all := topotree.CPURange(0, 15).Slice()
	for _, c := range []struct {
		name          string
		machine       string
		pu            int
		used, allowed []int
		load          PULoad
		want          int // -1: none
	}{
		{"the same cache", nodes, 6, []int{6}, all, PULoad{6: 1}, 4},
		{"the same cache but for a busy one", nodes, 6, []int{6}, all, PULoad{4: 1, 6: 1}, 5},
		{"the same node", nodes, 6, []int{4, 5, 6, 7}, all, nil, 0},
		{"another node", nodes, 2, []int{0, 1, 2, 3, 4, 5, 6, 7}, all, nil, 8},
		{"what is allowed", nodes, 2, []int{2}, []int{2, 13, 40}, nil, 13},
		{"nothing is idle", nodes, 2, []int{2}, []int{2, 3, 4}, PULoad{3: 0.5, 4: 1}, -1},
		{"nothing is allowed", nodes, 2, []int{2}, nil, nil, -1},
		{"not the sibling of its own", "core:2 pu:2", 0, []int{0}, all, PULoad{0: 1}, 2},
		{"not the sibling of another worker", "core:2 pu:2", 0, []int{0, 2}, all, PULoad{0: 1}, -1},
		{"not the sibling of a busy one", "core:3 pu:2", 0, []int{0}, all, PULoad{3: 1}, 4},
	} {
		got, ok := machineOf(t, c.machine, 0).SparePU(c.pu, c.used, c.allowed, c.load)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: PU %d, want %d", c.name, got, c.want)
		}
	}
	hybrid, err := Builtin("core-ultra-125h")
	if err != nil {
		t.Fatal(err)
	}
	fast := hybrid.FirstPUs(4).Slice()
	if got, ok := hybrid.SparePU(fast[0], fast, hybrid.Allowed().Slice(), nil); ok {
		t.Errorf("a worker of a fast core moves to PU %d, which is of another kind", got)
	}
}
