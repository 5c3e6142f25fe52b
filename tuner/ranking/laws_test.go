package ranking

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// lawMachines is the number of machines on which each law is checked.
const lawMachines = 6

// simulated ranks a profile for tinyllama on a few requests, one after the other.
func simulated(t testing.TB, p *profiles.Profile, tp int) *Ranking {
	t.Helper()
	w, err := replay.Named("sharegpt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Simulate(context.Background(), Options{Profile: p, Shape: shapeFor(t, "tinyllama-1.1b", "f32"),
		TP: tp, Load: Load{Workload: w, Seed: 1, Sequential: true, Requests: 5}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tame returns a machine whose PUs are all alike.
func tame(seed uint64) *syntheticHost {
	h := plant(seed)
	for i := range h.speed {
		h.speed[i], h.one[i] = h.speed[0], h.one[0]
	}
	for i := range h.nodeCap {
		h.nodeCap[i] = h.nodeCap[0]
	}
	h.holes = nil
	return h
}

// renumber permutes the numbers of the PUs and nodes of a profile.
func renumber(t *testing.T, p *profiles.Profile, seed uint64) *profiles.Profile {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	pus := r.Perm(p.Machine.Online.Last() + 1)
	nodes := r.Perm(len(p.Machine.Memory))
	set := func(s topotree.CPUSet) topotree.CPUSet {
		var out []int
		for pu := range s.All() {
			out = append(out, pus[pu])
		}
		return topotree.NewCPUSet(out...)
	}
	d := p.Machine.Describe()
	d.Online, d.Allowed = set(d.Online), set(d.Allowed)
	for i := range d.Levels {
		d.Levels[i].Sets = slices.Clone(d.Levels[i].Sets)
		for j, s := range d.Levels[i].Sets {
			d.Levels[i].Sets[j] = set(s)
		}
	}
	d.Memory = slices.Clone(d.Memory)
	for i := range d.Memory {
		d.Memory[i].ID, d.Memory[i].CPUs = nodes[d.Memory[i].ID], set(d.Memory[i].CPUs)
	}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	out := profiles.New(m, p.Host)
	for _, c := range p.Ceilings {
		c.CPUs = set(c.CPUs)
		out.Ceilings = append(out.Ceilings, c)
	}
	for _, f := range p.Sets {
		f.CPUs = set(f.CPUs)
		f.Flows = slices.Clone(f.Flows)
		for i := range f.Flows {
			f.Flows[i].CPUs = set(f.Flows[i].CPUs)
		}
		out.Sets = append(out.Sets, f)
	}
	for _, l := range p.Latent {
		l.Sets = slices.Clone(l.Sets)
		for i, s := range l.Sets {
			l.Sets[i] = set(s)
		}
		out.Latent = append(out.Latent, l)
	}
	for _, x := range p.Matrices {
		x.Items = slices.Clone(x.Items)
		for i, n := range x.Items {
			x.Items[i] = nodes[n]
		}
		out.Matrices = append(out.Matrices, x)
	}
	return out
}

// TestRenumberingChangesNothing checks that the best configuration does not depend on the numbers
// of PUs and nodes. The number of configurations may change by one: the cores that vLLM leaves out
// are the last by number, which may or may not be a set of a tree.
func TestRenumberingChangesNothing(t *testing.T) {
	for seed := uint64(1); seed <= lawMachines; seed++ {
		h := tame(seed)
		h.shown = true // a latent group depends on adjacent numbers
		p := h.profile(t, seed, 0)
		before, after := simulated(t, p, 0), simulated(t, renumber(t, p, seed), 0)
		a, b := before.Ranked[0], after.Ranked[0]
		if math.Abs(a.Score/b.Score-1) > 1e-6 || a.Config.TP() != b.Config.TP() ||
			a.Config.Decode.Count() != b.Config.Decode.Count() {
			t.Errorf("seed %d: %s on %s scores %g and renumbered %s on %s %g", seed,
				a.Names[0], a.Config.Decode, a.Score, b.Names[0], b.Config.Decode, b.Score)
		}
	}
}

// TestNoGainOfRanksWithoutDistance checks that dividing a model gains nothing if memory is equally
// near from everywhere.
func TestNoGainOfRanksWithoutDistance(t *testing.T) {
	for seed := uint64(1); seed <= lawMachines; seed++ {
		h := tame(seed)
		h.link, h.far, h.nodeLoss = 1e15, 1, 0
		p := h.profile(t, seed, 0)
		any, one := simulated(t, p, 0), simulated(t, p, 1)
		if any.Ranked[0].Score > one.Ranked[0].Score*1.001 {
			t.Errorf("seed %d: %s gains %.4f over one rank", seed, any.Ranked[0].Names[0],
				any.Ranked[0].Score/one.Ranked[0].Score)
		}
	}
}

// TestLinearBandwidthRemovesNothing checks that all PUs decode if the read rate of a PU does not
// depend on the others.
func TestLinearBandwidthRemovesNothing(t *testing.T) {
	for seed := uint64(1); seed <= lawMachines; seed++ {
		h := tame(seed)
		h.clusterCap, h.clusterLoss, h.link, h.perLevel, h.barrier = 1e15, 0, 1e15, 0, 1e-7
		for i := range h.nodeCap {
			h.nodeCap[i] = 1e15
		}
		p := h.profile(t, seed, 0)
		if best := simulated(t, p, 0).Ranked[0].Config; !best.Decode.Equal(p.Allowed()) {
			t.Errorf("seed %d: %s decodes on %s of %s", seed, best.Name(), best.Decode, p.Allowed())
		}
	}
}

// TestContentionInClusters checks that with contention one core less per cluster beats removing the
// same number at the end of each node, and that it does not without contention.
func TestContentionInClusters(t *testing.T) {
	rate := func(h *syntheticHost, p *profiles.Profile, out func(pu int) bool) float64 {
		shape := shapeFor(t, "tinyllama-1.1b", "f32")
		var keep []int
		for pu := range h.pus() {
			if !out(pu) {
				keep = append(keep, pu)
			}
		}
		r := simulatedConfig(t, p, shape, topotree.NewCPUSet(keep...))
		return r
	}
	for seed := uint64(1); seed <= lawMachines; seed++ {
		h := tame(seed)
		h.nodes, h.clusters, h.cores, h.smt = 2, 4, 4, 1
		h.nodeCap = []float64{1e12, 1e12}
		h.speed, h.one = slices.Repeat(h.speed[:1], 32), slices.Repeat(h.one[:1], 32)
		perCluster := func(pu int) bool { return pu%4 == 3 }
		perNode := func(pu int) bool { return pu%16 >= 12 }
		h.clusterKnee, h.clusterLoss, h.clusterCap = 3, 0.15, 3*h.one[0]
		p := h.profile(t, seed, 0)
		if sc, numa := rate(h, p, perCluster), rate(h, p, perNode); sc <= 1.05*numa {
			t.Errorf("seed %d, contention: one less a cluster %.4g, as many less a node %.4g", seed, sc, numa)
		}
		h.clusterLoss, h.clusterCap = 0, 1e15
		p = h.profile(t, seed, 0)
		if sc, numa := rate(h, p, perCluster), rate(h, p, perNode); math.Abs(sc/numa-1) > 0.001 {
			t.Errorf("seed %d, none: one less a cluster %.4g, as many less a node %.4g", seed, sc, numa)
		}
	}
}

// TestDearerBarriers checks that slower barriers never favor more ranks.
func TestDearerBarriers(t *testing.T) {
	for seed := uint64(1); seed <= lawMachines; seed++ {
		p := plant(seed).profile(t, seed, 0)
		before := simulated(t, p, 0).Ranked[0].Config.TP()
		for i := range p.Sets {
			if p.Sets[i].Name == profiles.Barrier {
				p.Sets[i].Median *= 20
			}
		}
		if after := simulated(t, p, 0).Ranked[0].Config; after.TP() > before {
			t.Errorf("seed %d: %d ranks before, %d with dearer barriers (%s)", seed, before, after.TP(), after.Name())
		}
	}
}

// TestCandidatesWithinBounds checks that no candidate has an unavailable PU, more PUs than the
// quota covers, or more bytes on a node than it holds.
func TestCandidatesWithinBounds(t *testing.T) {
	shape := shapeFor(t, "tinyllama-1.1b", "f32")
	for seed := uint64(1); seed <= 30; seed++ {
		r := rand.New(rand.NewPCG(seed, 6))
		h := plant(seed)
		h.holes = r.Perm(h.pus())[:r.IntN(h.pus())]
		d := h.machine(t).Describe()
		if r.IntN(2) == 0 {
			d.QuotaCPUs = 0.3 + 4*r.Float64()
		}
		for i := range d.Memory {
			d.Memory[i].Bytes = int64(r.IntN(8)) << 30 // 0 on one of several nodes: a node without memory
		}
		d.Memory[0].Bytes = 6 << 30
		m, err := d.Machine()
		if err != nil {
			t.Fatal(err)
		}
		p := profiles.New(m, profiles.Identity{})
		space, err := candidates.Enumerate(p, shape, candidates.Options{})
		if err != nil {
			continue // nothing fits
		}
		predictor := predictorOf(t, p, shape)
		for _, c := range space.Configs {
			if !c.Prefill.Union(c.Decode).In(m.Allowed) {
				t.Fatalf("seed %d: %s uses %s of %s", seed, c.Name(), c.Prefill.Union(c.Decode), m.Allowed)
			}
			if q := m.QuotaPUs(); q > 0 && max(c.Prefill.Count(), c.Decode.Count()) > q {
				t.Fatalf("seed %d: %s has more PUs than the quota of %d", seed, c.Name(), q)
			}
			for node, bytes := range predictor.Bytes(c) {
				if have := m.Node(node).Bytes; bytes > have {
					t.Fatalf("seed %d: %s puts %d bytes on node %d of %d", seed, c.Name(), bytes, node, have)
				}
			}
			if _, err := c.Service(); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, c.Name(), err)
			}
		}
	}
}
