package counters

import (
	"errors"
	"math"
	"testing"
)

// sample is a machine that counts everything.
func sample() (c Counts) {
	for e, n := range map[Event]float64{Instructions: 4000, Cycles: 2000, BusCycles: 100, CacheLoads: 40,
		CacheMisses: 10, TLBLoads: 1000, TLBMisses: 5,
		NodeLoads: 20, NodeMisses: 4, ContextSwitches: 6, PageFaults: 2, MemoryReads: 80, MemoryReadSpread: 8} {
		c[e].Count = n
	}
	return c
}

func byName(figures []Figure) map[string]Figure {
	out := map[string]Figure{}
	for _, f := range figures {
		out[f.Name] = f
	}
	return out
}

func TestFigures(t *testing.T) {
	got := byName(Figures(sample(), 2, 10))
	for name, want := range map[string]float64{"ipc": 2, "l3lpki": 10, "llc_miss": 0.25, "dtlb_miss": 0.005,
		"remote": 0.2, "mclpki": 20, "mcipki": 2, "buspki": 25,
		"read_gbps": 80 * 64 / 2e9, "switches": 0.6, "faults": 0.2} {
		f, ok := got[name]
		if !ok || f.Why != "" || f.Value == nil || math.Abs(*f.Value-want) > 1e-12 {
			t.Errorf("%s: %+v, want %v", name, f, want)
		}
	}
	if len(got) != 11 {
		t.Errorf("%d figures, want 11", len(got))
	}
}

// TestMissing removes events one by one: each figure that depends on them has the reason, and the
// others keep their values.
func TestMissing(t *testing.T) {
	gone := errors.New("not here")
	c := sample()
	c[Instructions].Missing = gone
	got := byName(Figures(c, 1, 1))
	for _, name := range []string{"ipc", "l3lpki", "mclpki", "mcipki", "buspki"} {
		if f := got[name]; f.Value != nil || f.Why != gone.Error() {
			t.Errorf("%s without instructions: %+v", name, f)
		}
	}
	for _, name := range []string{"llc_miss", "dtlb_miss", "remote", "read_gbps", "switches"} {
		if got[name].Value == nil {
			t.Errorf("%s needs no instructions: %+v", name, got[name])
		}
	}
	c = sample()
	c[NodeLoads].Count = 0
	if f := byName(Figures(c, 1, 1))["remote"]; f.Value != nil || f.Why == "" {
		t.Errorf("a ratio to nothing: %+v", f)
	}
}

func TestSubAndAdd(t *testing.T) {
	gone := errors.New("not here")
	a, b := sample(), sample()
	b[Cycles].Count = 500
	b[BusCycles].Missing = gone
	d := a.Sub(b)
	if d[Cycles].Count != 1500 || d[BusCycles].Missing != gone || d[Instructions].Count != 0 {
		t.Errorf("difference: %+v", d)
	}
	if s := a.Add(b); s[Cycles].Count != 2500 || s[BusCycles].Missing != gone {
		t.Errorf("sum: %+v", s)
	}
}
