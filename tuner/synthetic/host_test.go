package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A scribe writes the results of a probe of a machine.
type scribe struct {
	strings.Builder
	m     *machine
	rng   *rand.Rand
	noise float64
}

// hostYAML returns the host.yaml, version 2, of a full probe. Each figure has a normally
// distributed error, limited to two sigma, of relative size noise.
func (m *machine) hostYAML(seed uint64, noise float64) []byte {
	s := &scribe{m: m, rng: rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9)), noise: noise}
	s.host()
	s.levels()
	s.memory()
	s.classes()
	s.line("probe:")
	s.line("  mode: full")
	s.line("  seconds: 61.5")
	s.ceilings()
	s.line("sets:")
	s.peaks()
	s.saturations()
	s.meetings()
	s.latent()
	s.matrices()
	s.line("notes:")
	s.line("  - 'synthetic: not measured on a real machine'")
	return []byte(s.String())
}

func (s *scribe) line(format string, args ...any) {
	fmt.Fprintf(s, format, args...)
	s.WriteByte('\n')
}

// noisy returns a figure with measurement noise.
func (s *scribe) noisy(truth float64) float64 {
	for {
		if x := s.rng.NormFloat64(); math.Abs(x) <= 2 {
			return truth * (1 + s.noise*x)
		}
	}
}

// figure returns the fields of a measured figure.
func (s *scribe) figure(truth float64, unit string) string {
	v := s.noisy(truth)
	return fmt.Sprintf(`median: %.6g, min: %.6g, max: %.6g, "n": 15, noise: 0.01, unit: %s`, v, 0.95*v, 1.05*v, unit)
}

// list returns PUs in the format of Linux, in quotes: "0-3,8".
func list(pus []int) string {
	sorted := slices.Sorted(slices.Values(pus))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		part := strconv.Itoa(sorted[i])
		if j > i {
			part += "-" + strconv.Itoa(sorted[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strconv.Quote(strings.Join(parts, ","))
}

// lists returns several sets of PUs.
func lists(sets [][]int) string {
	var parts []string
	for _, set := range sets {
		parts = append(parts, list(set))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// row returns values in brackets.
func row[T any](values []T, format string) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, fmt.Sprintf(format, v))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// upTo returns first, its doubles below n, and n.
func upTo(first, n int) []int {
	var counts []int
	for k := first; k < n; k *= 2 {
		counts = append(counts, k)
	}
	return append(counts, n)
}

// curve returns the numbers of PUs up to n at which a saturation is measured.
func curve(n int) []int {
	var counts []int
	for k := 1; k < n; k += max(1, k/8*2) {
		counts = append(counts, k)
	}
	return append(counts, n)
}

func (s *scribe) host() {
	s.line("version: 2")
	s.line("host:")
	s.line("  arch: amd64")
	s.line("  cpu_model: Synthetic CPU %d", s.m.seed)
	s.line("  isa: [avx2]")
	s.line("  kernel: 6.8.0-synthetic")
	s.line("  numa_balancing: \"0\"")
	s.line("  thp: madvise")
	s.line("  governor: performance")
	s.line("  l1d: 32768")
	s.line("machine:")
	s.line("  source: live linux")
	s.line("  arch: x86_64")
	s.line("  model: Synthetic CPU %d", s.m.seed)
	s.line("  kernel: 6.8.0-synthetic")
	s.line("  online: %s", list(slices.Concat(s.m.split(s.m.node)...)))
	s.line("  allowed: %s", list(s.m.allowed()))
}

func (s *scribe) levels() {
	m := s.m
	core := func(p int) int { return m.pus[p].core }
	s.line("  levels:")
	s.level("package", 0, 0, m.split(m.socket))
	s.level("l3", m.l3, 0, m.caches())
	if m.kind == kindHybrid {
		first := slices.IndexFunc(m.cores, func(c coreRate) bool { return c.slow })
		own := m.split(func(p int) int {
			if core(p) >= first {
				return -1
			}
			return core(p)
		})
		// Four E cores share an L2, at no cost.
		module := m.split(func(p int) int {
			if core(p) < first {
				return -1
			}
			return (core(p) - first) / 4
		})
		s.level("l2", 2<<20, 0, own)
		s.level("l2", 4<<20, len(own), module)
	} else {
		s.level("l2", 1<<20, 0, m.split(core))
	}
	s.level("core", 0, 0, m.split(core))
}

func (s *scribe) level(kind string, bytes, first int, sets [][]int) {
	ids := make([]int, len(sets))
	for i := range ids {
		ids[i] = first + i
	}
	s.line("    - kind: %s", kind)
	if bytes > 0 {
		s.line("      bytes: %d", bytes)
	}
	s.line("      ids: %s", row(ids, "%d"))
	s.line("      sets: %s", lists(sets))
}

func (s *scribe) memory() {
	m := s.m
	s.line("  memory:")
	ids := make([]int, len(m.nodes))
	for n := range m.nodes {
		ids[n] = n
		s.line("    - id: %d", n)
		s.line("      cpus: %s", list(m.nodePUs(n)))
		s.line("      bytes: %d", 32<<30)
	}
	s.line("  distances:")
	s.line("    nodes: %s", row(ids, "%d"))
	var rows []string
	for i, from := range m.socketOf {
		values := make([]int, len(ids))
		for j, to := range m.socketOf {
			switch {
			case i == j:
				values[j] = 10
			case from == to:
				values[j] = 12
			default:
				values[j] = 32
			}
		}
		rows = append(rows, row(values, "%d"))
	}
	s.line("    matrix: [%s]", strings.Join(rows, ", "))
}

// nodePUs returns all PUs of a node, including those outside the cpuset.
func (m *machine) nodePUs(n int) []int {
	return m.split(func(p int) int {
		if m.node(p) != n {
			return -1
		}
		return n
	})[0]
}

// speedClasses returns the allowed PUs of each core type, the fastest first.
func (m *machine) speedClasses() [][]int {
	var fast, slow []int
	for _, p := range m.allowed() {
		if m.cores[m.pus[p].core].slow {
			slow = append(slow, p)
		} else {
			fast = append(fast, p)
		}
	}
	if len(slow) == 0 {
		return [][]int{fast}
	}
	return [][]int{fast, slow}
}
