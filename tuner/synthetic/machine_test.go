package synthetic

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	kindClusters  = "core clusters"
	kindSNC       = "SNC"
	kindCCX       = "CCX"
	kindHybrid    = "P and E cores"
	kindSlowNode  = "one slow node"
	kindHoles     = "holes in the cpuset"
	kindThrottled = "one throttled core"
	kindSockets   = "two sockets"
)

// The kinds cycle with the seed, in this order.
var kinds = []string{
	kindClusters, kindSNC, kindCCX, kindHybrid, kindSlowNode, kindHoles, kindThrottled, kindSockets,
}

// A place is the location of one PU. Its index in machine.pus is the system's number of it.
type place struct {
	core    int
	thread  int // 0 is the first PU of its core
	allowed bool
}

type coreRate struct {
	node    int
	cluster int     // -1: it shares no link
	slow    bool    // an E core, or throttled
	peak    float64 // float32 FLOP/s on registers, of one PU while the other cores are idle
	alone   float64 // B/s from its own node while the other cores are idle
}

// A limit is a bandwidth that PUs share.
type limit struct {
	rate float64 // B/s
	knee float64 // number of active PUs without contention
	cost float64 // fraction that each further PU costs
}

// at returns the bandwidth with the given number of readers. Contention costs at most half.
func (l limit) at(pus float64) float64 {
	if l.cost == 0 || pus <= l.knee {
		return l.rate
	}
	return l.rate * max(0.5, math.Pow(1-l.cost, pus-l.knee))
}

// A machine is the ground truth; a host.yaml shows what a probe would measure.
type machine struct {
	seed     uint64
	kind     string
	threads  int // PUs of a core; E cores have one
	pus      []place
	cores    []coreRate
	clusters []limit
	shown    bool // the clusters are L3 caches that the system reports
	nodes    []limit
	socketOf []int       // of each node
	near     [][]float64 // remaining fraction of a core's rate if a core of node i reads node j
	inner    float64     // B/s between nodes of a socket
	outer    float64     // B/s between sockets
	droop    float64     // fraction of the peak that is lost when every core is active
	pair     float64     // seconds of a barrier of two PUs
	step     float64     // relative increase for each doubling
	overNode float64     // factor of a barrier over nodes
	overSock float64     // factor of a barrier over sockets
	copies   float64     // bandwidth from cache to cache relative to a core's from memory
	l3       int         // bytes of one L3
}

// A shape has the number of each kind of part.
type shape struct {
	sockets  int
	nodes    int // per socket
	clusters int // per node
	cores    int // per cluster
	threads  int // per core
	little   int // E cores, with one PU each
}

func (s shape) pus() int {
	return s.sockets*s.nodes*s.clusters*s.cores*s.threads + s.little
}

func between(rng *rand.Rand, low, high float64) float64 {
	return low + (high-low)*rng.Float64()
}

// plant draws the machine of a seed.
func plant(seed uint64) *machine {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	count := uint64(len(kinds))
	m := &machine{seed: seed, kind: kinds[seed%count], threads: 1}
	if (seed/count+seed)%4 == 0 {
		m.threads = 2
	}
	s := drawShape(rng, m.kind, m.threads)
	m.build(s)
	m.number(rng, s)
	m.shown = len(m.clusters) > 0 && (m.kind != kindClusters || rng.IntN(2) == 0)
	m.drawCores(rng)
	m.drawLimits(rng, s)
	m.drawDistances(rng)
	if m.kind == kindHoles {
		m.punch(rng)
	}
	return m
}

func drawShape(rng *rand.Rand, kind string, threads int) shape {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	smallest := 8
	if kind == kindHoles {
		smallest = 16
	}
	for {
		s := shape{sockets: 1, nodes: 1, clusters: 1, threads: threads}
		switch kind {
		case kindClusters:
			s.nodes, s.clusters, s.cores = pick(1, 1, 2), pick(2, 3, 4, 6, 8), pick(3, 4, 4, 8)
		case kindSNC:
			s.nodes, s.cores = 4, pick(2, 3, 4, 6, 8, 12, 16)
		case kindCCX:
			s.nodes, s.clusters, s.cores = pick(1, 1, 2, 4), pick(2, 3, 4, 8), pick(3, 4, 4, 6, 8)
		case kindHybrid:
			s.cores, s.little = pick(2, 4, 6, 8), pick(4, 8, 12, 16)
		case kindSlowNode:
			s.nodes, s.cores = pick(2, 3, 4), pick(4, 6, 8, 12, 16)
		case kindHoles:
			s.nodes, s.clusters, s.cores = pick(1, 2), pick(1, 2, 3, 4), pick(4, 6, 8, 12)
		case kindThrottled:
			s.nodes, s.cores = pick(1, 1, 2), pick(4, 6, 8, 12, 16, 24, 32)
		case kindSockets:
			s.sockets, s.nodes, s.cores = 2, pick(1, 1, 2), pick(4, 6, 8, 12, 16, 24)
		}
		if n := s.pus(); n >= smallest && n <= 64 {
			return s
		}
	}
}

// build makes the cores, clusters and nodes of a shape.
func (m *machine) build(s shape) {
	for socket := range s.sockets {
		for range s.nodes {
			node := len(m.socketOf)
			m.socketOf = append(m.socketOf, socket)
			for range s.clusters {
				cluster := -1
				if s.clusters > 1 {
					cluster = len(m.clusters)
					m.clusters = append(m.clusters, limit{})
				}
				for range s.cores {
					m.cores = append(m.cores, coreRate{node: node, cluster: cluster})
				}
			}
		}
	}
	for range s.little {
		m.cores = append(m.cores, coreRate{cluster: -1, slow: true})
	}
}

// number numbers the PUs: siblings adjacent or after all first PUs, sockets one after another or
// interleaved.
func (m *machine) number(rng *rand.Rand, s shape) {
	order := make([]int, len(m.cores))
	interleaved := s.sockets == 2 && rng.IntN(4) == 0
	for i := range order {
		order[i] = i
		if interleaved {
			order[i] = i%2*(len(order)/2) + i/2
		}
	}
	if s.little > 0 || rng.IntN(3) == 0 {
		for _, c := range order {
			m.pus = append(m.pus, place{core: c, allowed: true})
			if s.threads == 2 && !m.cores[c].slow {
				m.pus = append(m.pus, place{core: c, thread: 1, allowed: true})
			}
		}
		return
	}
	for thread := range s.threads {
		for _, c := range order {
			m.pus = append(m.pus, place{core: c, thread: thread, allowed: true})
		}
	}
}

// drawCores draws the speed of each core.
func (m *machine) drawCores(rng *rand.Rand) {
	peak, alone := between(rng, 30e9, 150e9), between(rng, 5e9, 20e9)
	littlePeak, littleAlone := between(rng, 0.4, 0.65), between(rng, 0.5, 0.8)
	for i := range m.cores {
		c := &m.cores[i]
		c.peak, c.alone = peak, alone
		if c.slow {
			c.peak, c.alone = peak*littlePeak, alone*littleAlone
		}
	}
	if m.kind == kindThrottled {
		c := &m.cores[rng.IntN(len(m.cores))]
		c.slow = true
		c.peak *= between(rng, 0.4, 0.7)
		c.alone *= between(rng, 0.6, 0.9)
	}
	if rng.IntN(2) == 0 {
		m.droop = between(rng, 0.02, 0.12)
	}
	m.copies = between(rng, 0.8, 1.5)
	m.l3 = (16 + 8*rng.IntN(3)) << 20
}

// drawLimits draws the bandwidth of clusters, nodes and links.
func (m *machine) drawLimits(rng *rand.Rand, s shape) {
	alone, all := 0.0, 0.0
	for _, c := range m.cores {
		alone = max(alone, c.alone)
		if c.node == 0 {
			all += c.alone
		}
	}
	rate := all * between(rng, 0.35, 0.85)
	if len(m.clusters) > 0 {
		link := limit{rate: alone * max(1.2, float64(s.cores)*between(rng, 0.35, 0.75))}
		link.knee = math.Ceil(link.rate/alone) + float64(rng.IntN(2))
		link.cost = between(rng, 0.01, 0.06)
		for i := range m.clusters {
			m.clusters[i] = link
		}
		rate = float64(s.clusters) * link.rate * between(rng, 0.55, 1.1)
	}
	rate = min(rate, between(rng, 150e9, 350e9)/float64(s.nodes))
	rate = max(rate, 1.3*alone)
	spare, cost := between(rng, 1, 1.5), between(rng, 0.002, 0.015)
	if rng.IntN(4) == 0 {
		cost = 0
	}
	m.nodes = make([]limit, len(m.socketOf))
	for i := range m.nodes {
		m.nodes[i] = limit{rate: rate, knee: math.Ceil(spare * rate / alone), cost: cost}
	}
	if m.kind == kindSlowNode {
		n := &m.nodes[rng.IntN(len(m.nodes))]
		n.rate *= between(rng, 0.35, 0.6)
		n.knee = math.Ceil(spare * n.rate / alone)
	}
	m.inner = rate * between(rng, 0.5, 1)
	m.outer = rate * float64(s.nodes) * between(rng, 0.12, 0.35)
}

// drawDistances draws the costs of reaching other nodes and of barriers.
func (m *machine) drawDistances(rng *rand.Rand) {
	inside, outside := between(rng, 0.75, 0.95), between(rng, 0.45, 0.7)
	for i, from := range m.socketOf {
		row := make([]float64, len(m.socketOf))
		for j, to := range m.socketOf {
			switch {
			case i == j:
				row[j] = 1
			case from == to:
				row[j] = inside
			default:
				row[j] = outside
			}
		}
		m.near = append(m.near, row)
	}
	m.pair = between(rng, 0.5e-6, 2e-6)
	m.step = between(rng, 0.3, 0.8)
	m.overNode = between(rng, 1.05, 1.2)
	m.overSock = between(rng, 1.5, 2.2)
}

// punch removes PUs from the cpuset, except for the first PU of each cluster and node.
func (m *machine) punch(rng *rand.Rand) {
	kept := make([]bool, len(m.pus))
	for _, sets := range [][][]int{m.split(m.cluster), m.split(m.node)} {
		for _, set := range sets {
			kept[set[0]] = true
		}
	}
	left := len(m.pus)
	goal := max(8, int(float64(left)*between(rng, 0.6, 0.85)))
	for _, p := range rng.Perm(len(m.pus)) {
		if left > goal && !kept[p] {
			m.pus[p].allowed = false
			left--
		}
	}
}

func (m *machine) node(p int) int    { return m.cores[m.pus[p].core].node }
func (m *machine) socket(p int) int  { return m.socketOf[m.node(p)] }
func (m *machine) cluster(p int) int { return m.cores[m.pus[p].core].cluster }

// local returns the node of a PU, in the form that bandwidth needs.
func (m *machine) local(p int) []int { return []int{m.node(p)} }

// split returns the PUs of each key, ordered by their lowest PUs, without keys below 0.
func (m *machine) split(key func(p int) int) [][]int {
	var sets [][]int
	index := map[int]int{}
	for p := range m.pus {
		k := key(p)
		if k < 0 {
			continue
		}
		i, ok := index[k]
		if !ok {
			i = len(sets)
			index[k] = i
			sets = append(sets, nil)
		}
		sets[i] = append(sets[i], p)
	}
	return sets
}

// caches returns the PUs of each L3.
func (m *machine) caches() [][]int {
	switch {
	case m.shown:
		return m.split(m.cluster)
	case m.kind == kindSNC:
		return m.split(m.socket)
	}
	return m.split(m.node)
}

// only returns the PUs of a set that the cpuset allows.
func (m *machine) only(set []int) []int {
	return slices.DeleteFunc(slices.Clone(set), func(p int) bool { return !m.pus[p].allowed })
}

// allowed returns the PUs that the cpuset allows, in the order in which they are used: one of each
// core first, fast ones before slow ones, then the siblings.
func (m *machine) allowed() []int {
	all := make([]int, len(m.pus))
	for p := range all {
		all[p] = p
	}
	return m.order(m.only(all))
}

func (m *machine) order(pus []int) []int {
	sorted := slices.Sorted(slices.Values(pus))
	seen := make([]int, len(m.cores))
	turn := make([]int, len(m.pus))
	for _, p := range sorted {
		c := m.pus[p].core
		turn[p] = 2 * seen[c]
		if m.cores[c].slow {
			turn[p]++
		}
		seen[c]++
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	return sorted
}

func (m *machine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s: %d PUs (%d allowed) of %d cores, %d nodes, %d sockets",
		m.seed, m.kind, len(m.pus), len(m.allowed()), len(m.cores), len(m.nodes), m.socketOf[len(m.socketOf)-1]+1)
	for _, c := range m.cores[:1] {
		fmt.Fprintf(&b, "; a core %.0f GFLOP/s, %.1f GB/s", c.peak/1e9, c.alone/1e9)
	}
	for _, c := range m.cores {
		if c.slow {
			fmt.Fprintf(&b, "; a slow one %.0f GFLOP/s, %.1f GB/s", c.peak/1e9, c.alone/1e9)
			break
		}
	}
	if len(m.clusters) > 0 {
		c := m.clusters[0]
		fmt.Fprintf(&b, "; %d clusters (shown: %t) %.1f GB/s, -%.1f %% a PU from %.0f on",
			len(m.clusters), m.shown, c.rate/1e9, 100*c.cost, c.knee)
	}
	for i, n := range m.nodes {
		fmt.Fprintf(&b, "; node %d %.0f GB/s, -%.1f %% a PU from %.0f on", i, n.rate/1e9, 100*n.cost, n.knee)
	}
	if len(m.nodes) > 1 {
		fmt.Fprintf(&b, "; links %.0f GB/s, between sockets %.0f GB/s", m.inner/1e9, m.outer/1e9)
	}
	fmt.Fprintf(&b, "; barrier %.2f us and %.0f %% a doubling", 1e6*m.pair, 100*m.step)
	return b.String()
}
