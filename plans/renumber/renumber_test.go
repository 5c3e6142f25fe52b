package renumber_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
	"sandwich/plans/renumber"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

func set(t *testing.T, text string) topotree.CPUSet {
	t.Helper()
	s, err := topotree.ParseCPUSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// host returns a host of two packages with a NUMA node and four cores each, of which a process may
// use some.
func host(t *testing.T, allowed string) *profiles.Profile {
	t.Helper()
	m, err := hwloc.ReadSynthetic("pack:2 numa:1 l3:1 core:4 pu:1")
	if err != nil {
		t.Fatal(err)
	}
	d := m.Describe()
	d.Arch, d.Model, d.Allowed = "x86_64", "Test CPU", set(t, allowed)
	if m, err = d.Machine(); err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{ISA: []string{"avx2", "avx512", "avx512_vnni"}})
}

// tuned returns a bundle with a rank on each given set of PUs.
func tuned(t *testing.T, h *profiles.Profile, ranks ...plans.Rank) *bundle.Bundle {
	t.Helper()
	var all topotree.CPUSet
	for _, r := range ranks {
		all = all.Union(r.PUs)
	}
	service, err := plans.NewService(ranks, all, all)
	if err != nil {
		t.Fatal(err)
	}
	p, err := heuristic.Default(h, plantest.Llama160M("q8_0"), heuristic.Options{Service: &service})
	if err != nil {
		t.Fatal(err)
	}
	p.Tuned = true
	return &bundle.Bundle{Plan: *p, Host: *h,
		Evidence: evidence.Evidence{Version: plans.Version, Created: "2026-01-31T12:00:00Z"}}
}

// TestBundle renumbers a plan for other CPUs of the same machine.
func TestBundle(t *testing.T) {
	for _, c := range []struct {
		made, here string
		node, want int
		pus        string // "": refused
	}{
		{"0", "1", 0, 0, "1"},
		{"0", "5", 0, 1, "5"},
		{"0", "5", -1, -1, "5"},
		{"0-1", "6-7", 0, 1, "6-7"},
		{"0-3", "4-7", 0, 1, "4-7"},
		{"4-7", "0-3", 1, 0, "0-3"},
		{"0-1", "3-4", 0, 0, ""},
		{"0-1", "0-2", 0, 0, ""},
		{"0", "5", 1, 1, ""}, // the memory of the other package
	} {
		b := tuned(t, host(t, c.made), plans.Rank{PUs: set(t, c.made), NUMANode: c.node})
		here := host(t, c.here)
		got, text, err := renumber.Bundle(b, here)
		if c.pus == "" {
			if !errors.Is(err, plans.ErrForeignHost) || got != nil {
				t.Errorf("%s on %s: %v", c.made, c.here, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s on %s: %v", c.made, c.here, err)
			continue
		}
		p := &got.Plan
		if r := p.Ranks[0]; !p.PUs().Equal(set(t, c.pus)) || !r.PUs.Equal(p.PUs()) || r.NUMANode != c.want ||
			!strings.Contains(text, "PUs "+c.pus+" here") {
			t.Errorf("%s on %s: PUs %s, rank %v: %s", c.made, c.here, p.PUs(), r, text)
		}
		if !reflect.DeepEqual(p.Decode.Tables, b.Plan.Decode.Tables) || !reflect.DeepEqual(p.Weights, b.Plan.Weights) {
			t.Errorf("%s on %s: kernels changed", c.made, c.here)
		}
		if !b.Plan.PUs().Equal(set(t, c.made)) || !b.Host.Allowed().Equal(set(t, c.made)) {
			t.Errorf("%s on %s: the original changed", c.made, c.here)
		}
		if v := check.Verify(got, here, &p.Model); v.Judgement != check.Optimal {
			t.Errorf("%s on %s: %s %v", c.made, c.here, v.Judgement, v.Reasons)
		}
	}
}

// TestDigest checks that a renumbered plan keeps the digest of the plan that was read.
func TestDigest(t *testing.T) {
	made := tuned(t, host(t, "0-1"), plans.Rank{PUs: set(t, "0-1"), NUMANode: 0})
	read, err := bundle.Read(bundletest.Write(t, made))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := renumber.Bundle(read, host(t, "6-7"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Plan.Digest() == made.Plan.Digest() {
		t.Error("the renumbered plan equals the original")
	}
	for name, b := range map[string]*bundle.Bundle{"made": made, "read": read, "renumbered": got} {
		if b.Digest() != made.Plan.Digest() {
			t.Errorf("%s: digest %s, want %s", name, b.Digest(), made.Plan.Digest())
		}
	}
}

// TestSame checks that the bundle of the same CPUs is returned as it is.
func TestSame(t *testing.T) {
	h := host(t, "2-5")
	b := tuned(t, h, plans.Rank{PUs: set(t, "2-3"), NUMANode: 0}, plans.Rank{PUs: set(t, "4-5"), NUMANode: 1})
	if got, text, err := renumber.Bundle(b, h); got != b || text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestMeasuredClasses checks that a plan stays as it is on its own host, where measured classes of
// PUs are not known.
func TestMeasuredClasses(t *testing.T) {
	h := host(t, "0-7")
	measured := *h
	var err error
	measured.Machine, err = h.Machine.WithMeasured([]topotree.MeasuredClass{{Name: "slow", CPUs: set(t, "0,5")},
		{Name: "fast", CPUs: set(t, "1-4,6-7")}})
	if err != nil {
		t.Fatal(err)
	}
	b := tuned(t, &measured, plans.Rank{PUs: set(t, "1-4")})
	if got, note, err := renumber.Bundle(b, h); got != b || note != "" || err != nil {
		t.Errorf("the plan is changed: %q, %v", note, err)
	}
}

// TestRanks renumbers a plan of two ranks whose nodes change places.
func TestRanks(t *testing.T) {
	made := host(t, "0,1,6")
	b := tuned(t, made, plans.Rank{PUs: set(t, "0-1"), NUMANode: 0}, plans.Rank{PUs: set(t, "6"), NUMANode: 1})
	got, _, err := renumber.Bundle(b, host(t, "2,5,7"))
	if err != nil {
		t.Fatal(err)
	}
	r := got.Plan.Ranks
	if !r[0].PUs.Equal(set(t, "5,7")) || r[0].NUMANode != 1 || !r[1].PUs.Equal(set(t, "2")) || r[1].NUMANode != 0 {
		t.Errorf("%v", r)
	}
}

// TestClasses renumbers a plan with a class of workers.
func TestClasses(t *testing.T) {
	b := bundletest.New(t)
	b.Plan = *plantest.Heterogeneous(t)
	made := b.Plan.Classes[0].PUs
	limit := func(pus topotree.CPUSet) *profiles.Profile {
		return plantest.Rehost(t, &b.Host, func(d *topotree.Description, _ *profiles.Identity) {
			d.Allowed, d.Online = pus, topotree.CPURange(0, 3)
		})
	}
	here := limit(topotree.CPURange(0, 3))
	got, _, err := renumber.Bundle(b, here)
	if err != nil || got != b {
		t.Fatalf("equal hosts: %v", err)
	}
	b.Plan.Use(plans.ServiceConfig{Ranks: []plans.Rank{{PUs: topotree.CPURange(0, 1), NUMANode: -1}},
		PrefillPUs: topotree.CPURange(0, 1), DecodePUs: topotree.CPURange(0, 1)})
	b.Host = *limit(topotree.CPURange(0, 1))
	if got, _, err = renumber.Bundle(b, limit(topotree.CPURange(2, 3))); err != nil {
		t.Fatal(err)
	}
	if c := got.Plan.Classes[0].PUs; !c.Equal(topotree.NewCPUSet(3)) || !b.Plan.Classes[0].PUs.Equal(made) {
		t.Errorf("the class is on the PUs %s, in the original on %s", c, b.Plan.Classes[0].PUs)
	}
}
