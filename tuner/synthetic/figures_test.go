package synthetic

import (
	"fmt"
	"slices"
)

func (s *scribe) classes() {
	classes := s.m.speedClasses()
	if len(classes) == 1 {
		return
	}
	if s.m.kind == kindHybrid {
		fast, slow := s.m.cores[0], s.m.cores[len(s.m.cores)-1]
		s.line("  core_types:")
		s.line("    - name: cpu_core")
		s.line("      cpus: %s", list(classes[0]))
		s.line("      capacity: 1024")
		s.line("    - name: cpu_atom")
		s.line("      cpus: %s", list(classes[1]))
		s.line("      capacity: %.0f", 1024*slow.peak/fast.peak)
	}
	s.line("  measured:")
	for i, class := range classes {
		s.line("    - name: class %d", i)
		s.line("      cpus: %s", list(class))
	}
}

func (s *scribe) ceilings() {
	m := s.m
	all := m.allowed()
	s.line("ceilings:")
	for _, kind := range []struct {
		name, unit string
		factor     float64
	}{{"f32", "FLOP/s", 1}, {"int8", "OP/s", 2}} {
		for _, n := range upTo(1, len(all)) {
			s.line("  - {kind: compute, isa: avx2, type: %s, pus: %d, cpus: %s, %s}", kind.name, n, list(all[:n]),
				s.figure(kind.factor*m.peak(all[:n]), kind.unit))
		}
	}
	for _, n := range upTo(1, len(all)) {
		s.line("  - {kind: bandwidth, level: memory, pus: %d, cpus: %s, %s}", n, list(all[:n]),
			s.figure(m.bandwidth(all[:n], m.local), "B/s"))
	}
}

func (s *scribe) peaks() {
	for i, class := range s.m.speedClasses() {
		one := s.m.order(class)[:1]
		peak := s.m.peak(one)
		format := "  - {name: peak, domain: class %d, cpus: %s, isa: avx2, type: %s, %s}"
		s.line(format, i, list(one), "f32", s.figure(peak, "FLOP/s"))
		s.line(format, i, list(one), "int8", s.figure(2*peak, "OP/s"))
	}
}

func (s *scribe) saturation(domain string, set []int) {
	s.line("  - {name: saturation, domain: %s, cpus: %s, %s}", domain, list(set),
		s.figure(s.m.bandwidth(set, s.m.local), "B/s"))
}

func (s *scribe) saturations() {
	m := s.m
	clusters := m.split(m.cluster)
	for n := range m.nodes {
		domain := fmt.Sprintf("node %d", n)
		set := m.order(m.only(m.nodePUs(n)))
		for _, k := range curve(len(set)) {
			s.saturation(domain, set[:k])
		}
		// One core of each cluster.
		var spread []int
		for _, cluster := range clusters {
			if m.node(cluster[0]) == n {
				spread = append(spread, m.order(m.only(cluster))[0])
			}
		}
		if len(spread) > 1 && list(spread) != list(set[:len(spread)]) {
			s.saturation(domain, spread)
		}
	}
	for _, cluster := range clusters {
		domain := fmt.Sprintf("group of PU %d", cluster[0])
		if m.shown {
			domain = fmt.Sprintf("cluster of PU %d", cluster[0])
		}
		set := m.order(m.only(cluster))
		for _, k := range curve(len(set)) {
			s.saturation(domain, set[:k])
		}
	}
}

// meetings writes barriers, all-reduces and flows.
func (s *scribe) meetings() {
	m := s.m
	all := m.allowed()
	for _, n := range upTo(2, len(all)) {
		s.line("  - {name: barrier, domain: machine, cpus: %s, %s}", list(all[:n]),
			s.figure(m.barrier(all[:n]), "s"))
	}
	for ranks := 2; ranks <= 16 && ranks <= len(all); ranks *= 2 {
		set := all[:len(all)-len(all)%ranks]
		for _, bytes := range []int{4096, 65536, 1048576, 16777216} {
			s.line("  - {name: all-reduce, domain: machine, cpus: %s, ranks: %d, bytes: %d, %s}", list(set), ranks,
				bytes, s.figure(m.allReduce(set, ranks, float64(bytes)), "s"))
		}
	}
	if len(m.nodes) > 1 {
		s.line("  - {name: flows, domain: machine, cpus: %s, flows: [{cpus: %s, node: -1}], %s}", list(all), list(all),
			s.figure(m.bandwidth(all, func(int) []int { return m.allNodes() }), "B/s"))
	}
}

func (m *machine) allNodes() []int {
	ids := make([]int, len(m.nodes))
	for n := range ids {
		ids[n] = n
	}
	return ids
}

func (s *scribe) latent() {
	if s.m.shown || len(s.m.clusters) == 0 {
		return
	}
	sets := s.m.split(s.m.cluster)
	s.line("latent:")
	s.line("  - matrix: pu-latency")
	s.line("    sets: %s", lists(sets))
	s.line("    contrast: 2.2")
	s.line("    effect: 20")
	s.line("    text: %d groups of PUs reach each other sooner than the others", len(sets))
}

// matrices writes the bandwidth from node to node and, if it shows clusters that the system hides,
// the latency of a cache line from PU to PU.
func (s *scribe) matrices() {
	m := s.m
	s.line("matrices:")
	ids := m.allNodes()
	var rows [][]float64
	for _, i := range ids {
		set := m.only(m.nodePUs(i))
		values := make([]float64, len(ids))
		for _, j := range ids {
			values[j] = s.noisy(m.bandwidth(set, func(int) []int { return []int{j} }))
		}
		rows = append(rows, values)
	}
	s.matrix("node-bandwidth", "B/s", ids, rows)
	if m.shown || len(m.clusters) == 0 {
		return
	}
	pus := slices.Sorted(slices.Values(m.allowed()))
	rows = nil
	for range pus {
		rows = append(rows, make([]float64, len(pus)))
	}
	for i, p := range pus {
		for j, q := range pus[:i] {
			ns := 140.0
			switch {
			case m.pus[p].core == m.pus[q].core:
				ns = 25
			case m.cluster(p) == m.cluster(q):
				ns = 45
			case m.node(p) == m.node(q):
				ns = 100
			}
			rows[i][j] = s.noisy(ns)
			rows[j][i] = rows[i][j]
		}
	}
	s.matrix("pu-latency", "ns", pus, rows)
}

func (s *scribe) matrix(name, unit string, items []int, rows [][]float64) {
	s.line("  - name: %s", name)
	s.line("    items: %s", row(items, "%d"))
	s.line("    unit: %s", unit)
	s.line("    rows:")
	for _, values := range rows {
		s.line("      - %s", row(values, "%.6g"))
	}
	s.line("    \"n\": 15")
	s.line("    noise: 0.01")
}
