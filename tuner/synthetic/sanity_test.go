package synthetic

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const sanitySeeds = 48

// whole returns one rank whose pages are interleaved over all nodes.
func (m *machine) whole() configuration {
	all := m.allowed()
	return configuration{ranks: []rank{{all, m.allNodes()}}, prefill: all, decode: all}
}

// perNode returns one rank per node.
func (m *machine) perNode() configuration {
	all := m.allowed()
	c := configuration{prefill: all, decode: all}
	for n := range m.nodes {
		c.ranks = append(c.ranks, rank{m.only(m.nodePUs(n)), []int{n}})
	}
	return c
}

// some returns some of the allowed PUs, at least one.
func (m *machine) some(rng *rand.Rand) []int {
	all := m.allowed()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+rng.IntN(len(all))]
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(b) }

func TestPlant(t *testing.T) {
	siblings := 0
	for seed := range uint64(64) {
		m := plant(seed)
		if again := plant(seed); again.String() != m.String() {
			t.Errorf("%v: the same seed makes %v too", m, again)
		}
		if n := len(m.pus); n < 8 || n > 64 || len(m.allowed()) < 8 {
			t.Errorf("%v: %d PUs", m, n)
		}
		if n := len(m.nodes); n < 1 || n > 4 {
			t.Errorf("%v: %d nodes", m, n)
		}
		times := make([]int, len(m.pus))
		for n := range m.nodes {
			for _, p := range m.nodePUs(n) {
				times[p]++
			}
		}
		if slices.ContainsFunc(times, func(n int) bool { return n != 1 }) {
			t.Errorf("%v: PUs are in so many nodes: %v", m, times)
		}
		if m.kind == kindHoles && len(m.allowed()) == len(m.pus) {
			t.Errorf("%v: no holes", m)
		}
		if m.threads == 2 {
			siblings++
		}
	}
	if siblings != 16 {
		t.Errorf("%d of 64 machines have siblings", siblings)
	}
}

// TestLocalBandwidth checks that the local bandwidth of cores is bounded by cores, clusters and
// nodes only.
func TestLocalBandwidth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		set := m.some(rng)
		want := 0.0
		for n, node := range m.nodes {
			readers, sum := 0, 0.0
			inCluster := make([]float64, len(m.clusters))
			ofCluster := make([]int, len(m.clusters))
			seen := make([]bool, len(m.cores))
			for _, p := range set {
				if m.node(p) != n {
					continue
				}
				readers++
				id := m.pus[p].core
				rate := m.cores[id].alone
				if seen[id] {
					rate = 0
				}
				seen[id] = true
				if k := m.cluster(p); k >= 0 {
					inCluster[k] += rate
					ofCluster[k]++
				} else {
					sum += rate
				}
			}
			for k, rate := range inCluster {
				sum += min(rate, m.clusters[k].at(float64(ofCluster[k])))
			}
			want += min(sum, node.at(float64(readers)))
		}
		if got := m.bandwidth(set, m.local); !near(got, want, 1e-6) {
			t.Errorf("%v: PUs %v read %.4g B/s, not %.4g", m, set, got, want)
		}
	}
}

// TestLimits checks that no limit is exceeded, and that each PU is bounded by a full one.
func TestLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		set := m.place(m.some(rng))
		nodesOf := func(int) []int {
			ids := rng.Perm(len(m.nodes))
			return ids[:1+rng.IntN(len(ids))]
		}
		flow := m.traffic(set, nodesOf)
		rates := flow.rates(mask(len(set)), flow.own)
		taken, shares := make([]float64, len(flow.limits)), make([]float64, len(flow.limits))
		for i, uses := range flow.uses {
			for _, u := range uses {
				taken[u.limit] += u.share * rates[i]
				shares[u.limit] += u.share
			}
		}
		for j, l := range flow.limits {
			if bound := l.at(shares[j]); taken[j] > bound*(1+1e-6) {
				t.Errorf("%v: limit %d of %.4g B/s carries %.4g", m, j, bound, taken[j])
			}
		}
		for i, rate := range rates {
			held := near(rate, flow.own[i], 1e-6)
			for _, u := range flow.uses[i] {
				held = held || near(taken[u.limit], flow.limits[u.limit].at(shares[u.limit]), 1e-6)
			}
			if !held || rate <= 0 || rate > flow.own[i]*(1+1e-6) {
				t.Errorf("%v: PU %d reads %.4g B/s of its %.4g, held: %t", m, set[i], rate, flow.own[i], held)
			}
		}
	}
}

// TestWeightsAreRead checks that all weights are read from the nodes for each token.
func TestWeightsAreRead(t *testing.T) {
	const weights = 4 * (22*44040192 + 32000*2048)
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		sum := 0.0
		for _, n := range m.nodes {
			sum += n.rate
		}
		for _, c := range []configuration{m.whole(), m.perNode()} {
			if got, minimum := m.seconds(c), 337*weights/sum; !(got > minimum) || math.IsInf(got, 1) {
				t.Errorf("%v: %d ranks take %.3f s, at least %.3f", m, len(c.ranks), got, minimum)
			}
		}
	}
}

func (m *machine) scaled(by float64) *machine {
	fast := *m
	fast.cores = slices.Clone(m.cores)
	for i := range fast.cores {
		fast.cores[i].alone *= by
	}
	fast.clusters = slices.Clone(m.clusters)
	for i := range fast.clusters {
		fast.clusters[i].rate *= by
	}
	fast.nodes = slices.Clone(m.nodes)
	for i := range fast.nodes {
		fast.nodes[i].rate *= by
	}
	fast.inner *= by
	fast.outer *= by
	return &fast
}

func TestMoreBandwidth(t *testing.T) {
	const by = 1.25
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		fast := m.scaled(by)
		for _, c := range []configuration{m.whole(), m.perNode()} {
			before, after := m.seconds(c), fast.seconds(c)
			if after > before || after < 0.98*before/by {
				t.Errorf("%v: %d ranks take %.4f s, and %.4f s with more bandwidth", m, len(c.ranks), before, after)
			}
		}
	}
}

// renumbered returns the same machine with number[p] as the number of PU p.
func (m *machine) renumbered(number []int) *machine {
	other := *m
	other.pus = make([]place, len(m.pus))
	for p, n := range number {
		other.pus[n] = m.pus[p]
	}
	return &other
}

func TestRenumbering(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		number := rng.Perm(len(m.pus))
		other := m.renumbered(number)
		translate := func(pus []int) []int {
			var out []int
			for _, p := range pus {
				out = append(out, number[p])
			}
			return out
		}
		c := m.perNode()
		c.decode = nil
		for _, r := range c.ranks {
			c.decode = append(c.decode, r.pus[:1+rng.IntN(len(r.pus))]...)
		}
		d := configuration{prefill: translate(c.prefill), decode: translate(c.decode)}
		for _, r := range c.ranks {
			d.ranks = append(d.ranks, rank{translate(r.pus), r.nodes})
		}
		if got, want := other.seconds(d), m.seconds(c); !near(got, want, 1e-9) {
			t.Errorf("%v: renumbered it takes %.6f s, not %.6f", m, got, want)
		}
		set := m.some(rng)
		got, want := other.bandwidth(translate(set), other.local), m.bandwidth(set, m.local)
		if !near(got, want, 1e-9) {
			t.Errorf("%v: renumbered it reads %.6g B/s, not %.6g", m, got, want)
		}
	}
}

func TestOnePU(t *testing.T) {
	const layer, head = 44040192.0, 32000 * 2048.0 // weights
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		for _, p := range m.allowed() {
			c := m.cores[m.pus[p].core]
			rate := min(c.alone, m.nodes[c.node].at(1))
			if c.cluster >= 0 {
				rate = min(rate, m.clusters[c.cluster].at(1))
			}
			at := func(intensity float64) float64 { return min(rate, 0.8*c.peak/intensity) }
			prefill := 22*4*layer/at(80.5) + 4*head/at(0.5) + 22*161*2048/at(324)
			decode := 22*4*layer/at(0.5) + 4*head/at(0.5) + 22*330*2048/at(4)
			want := prefill + 337*decode
			one := []int{p}
			got := m.seconds(configuration{ranks: []rank{{one, []int{c.node}}}, prefill: one, decode: one})
			if !near(got, want, 1e-6) {
				t.Errorf("%v: PU %d takes %.4f s, not %.4f", m, p, got, want)
			}
		}
	}
}

func TestPeakAndBarrier(t *testing.T) {
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		all := m.allowed()
		last, waited := 0.0, 0.0
		for n := range all {
			peak, wait := m.peak(all[:n+1]), m.barrier(all[:n+1])
			if peak <= last*0.99 || wait < waited {
				t.Errorf("%v: %d PUs reach %.4g FLOP/s and meet in %.4g s", m, n+1, peak, wait)
			}
			last, waited = peak, wait
		}
		if small, large := m.allReduce(all, 2, 4096), m.allReduce(all, 4, 1<<24); small >= large {
			t.Errorf("%v: all-reduces take %.4g s and %.4g s", m, small, large)
		}
	}
}

func TestCannotRun(t *testing.T) {
	m := plant(5)
	c := m.whole()
	for p := range m.pus {
		if !m.pus[p].allowed {
			c.ranks[0].pus = append(slices.Clone(c.ranks[0].pus), p)
			c.decode = []int{p}
		}
	}
	if got := m.seconds(c); !math.IsInf(got, 1) {
		t.Errorf("%v: it takes %.3f s with a PU out of the cpuset", m, got)
	}
}

func TestHostYAML(t *testing.T) {
	for seed := range uint64(sanitySeeds) {
		m := plant(seed)
		text := m.hostYAML(seed, 0.03)
		if !bytes.Equal(text, m.hostYAML(seed, 0.03)) || bytes.Equal(text, m.hostYAML(seed+1, 0.03)) {
			t.Errorf("%v: the noise is not the seed's", m)
		}
		if strings.Contains(string(text), "%!") || bytes.Contains(text, []byte("NaN")) ||
			bytes.Contains(text, []byte("Inf")) {
			t.Errorf("%v: not a number in\n%s", m, text)
		}
		hidden := strings.Contains(string(text), "group of PU") && strings.Contains(string(text), "latent:")
		if want := len(m.clusters) > 0 && !m.shown; hidden != want {
			t.Errorf("%v: latent groups: %t, not %t", m, hidden, want)
		}
		if strings.Contains(string(text), "measured:") != (len(m.speedClasses()) > 1) {
			t.Errorf("%v: wrong classes", m)
		}
	}
}

func BenchmarkSeconds(b *testing.B) {
	for seed := range uint64(len(kinds)) {
		m := plant(seed)
		b.Run(strings.ReplaceAll(m.kind, " ", "-"), func(b *testing.B) {
			c := m.perNode()
			for b.Loop() {
				m.seconds(c)
			}
		})
	}
}
