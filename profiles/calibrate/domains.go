package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// domainWindow is the duration of one sample of a set of PUs.
const domainWindow = 4 * time.Millisecond

// measureNodes fills NodeMatrix: all PUs of node i read the memory of node j. Items are the nodes
// that could be read; the row of a node without PUs is 0.
func (f *full) measureNodes(ctx context.Context, until time.Time) error {
	regions := f.memory.regions
	if len(regions) == 0 || regions[0].node < 0 {
		return fmt.Errorf("%w: the machine has no memory node that can be read", errUnmeasured)
	}
	type cell struct{ i, j int }
	var trials []*trial
	at := map[*trial]cell{}
	for i, from := range regions {
		workers := f.workersOf(f.coresFirst(from.cpus))
		for j := range regions {
			if len(workers) > 0 {
				t := &trial{workers: workers}
				trials = append(trials, t)
				at[t] = cell{i, j}
			}
		}
	}
	err := f.rounds(ctx, trials, until, func(t *trial) error {
		f.memory.divide(regions[at[t].j], t.workers)
		rate, err := f.run(f.readFor(t.workers, domainWindow))
		t.a = append(t.a, rate)
		return err
	})
	m := profiles.Matrix{Name: profiles.NodeMatrix, Unit: "B/s"}
	for _, r := range regions {
		m.Items = append(m.Items, r.node)
		m.Rows = append(m.Rows, make(profiles.MatrixRow, len(regions)))
		m.Noises = append(m.Noises, make(profiles.MatrixRow, len(regions)))
	}
	smallest := math.MaxInt
	var noises []float64
	for _, t := range trials {
		smallest = min(smallest, len(t.a))
		if len(t.a) > 0 {
			fig := profiles.NewFigure("B/s", t.a)
			m.Rows[at[t].i][at[t].j], m.Noises[at[t].i][at[t].j] = fig.Median, fig.Noise
			noises = append(noises, fig.Noise)
		}
	}
	if len(noises) > 0 {
		m.N, m.Noise = max(1, smallest), num.Median(noises)
		f.matrices = append(f.matrices, m)
	}
	return err
}

// domain is a named list of PUs, best first.
type domain struct {
	name string
	pus  []int
}

// maxDomains is the maximum number of domains of one kind, spread evenly over the machine.
const maxDomains = 16

// saturationDomains returns the NUMA nodes, the last-level caches whose PUs are not those of a
// node, and measured clusters.
func (f *full) saturationDomains() []domain {
	var out []domain
	seen := map[string]bool{}
	add := func(name string, set topotree.CPUSet) {
		pus := f.coresFirst(set)
		if key := topotree.NewCPUSet(pus...).Key(); len(pus) > 0 && !seen[key] {
			seen[key] = true
			out = append(out, domain{name, pus})
		}
	}
	var nodes []topotree.Object
	m := f.profile.Machine
	for _, n := range memoryNodes(m) {
		if n.ID < 0 {
			add(profiles.MachineDomain, n.CPUs)
		} else if !n.CPUs.IsEmpty() {
			nodes = append(nodes, topotree.Object{Kind: topotree.KindNUMA, ID: n.ID, CPUs: n.CPUs})
		}
	}
	for _, list := range [][]topotree.Object{nodes, clusterObjects(m)} {
		for i := range min(len(list), maxDomains) {
			o := list[i*len(list)/min(len(list), maxDomains)]
			name := profiles.ClusterDomain(o.CPUs)
			if o.Kind == topotree.KindNUMA {
				name = profiles.NodeDomain(o.ID)
			}
			add(name, o.CPUs)
		}
	}
	groups := f.hiddenGroups()
	for _, set := range groups[:min(len(groups), maxDomains)] {
		add(profiles.GroupDomain(set), set)
	}
	return out
}

// hiddenGroups returns the innermost clusters that the matrices so far show and the tree lacks.
func (f *full) hiddenGroups() []topotree.CPUSet {
	tree, err := f.profile.Machine.Usable()
	if err != nil {
		return nil
	}
	for _, m := range f.matrices {
		if m.Name == profiles.NodeMatrix {
			continue
		}
		found, err := latent(tree, m)
		for _, l := range found {
			if err == nil && l.Known == "" {
				return l.Sets
			}
		}
	}
	return nil
}

// spreadSets returns, for each node with several last-level caches, sets with one PU and with two
// PUs of each cache. Compared with the first PUs of the node, they share fewer caches.
func (f *full) spreadSets() []domain {
	var out []domain
	for _, n := range memoryNodes(f.profile.Machine) {
		var within []topotree.Object
		for _, o := range clusterObjects(f.profile.Machine) {
			if o.CPUs.In(n.CPUs) {
				within = append(within, o)
			}
		}
		for _, each := range []int{1, 2} {
			if pus := f.oneOfEach(within, each); len(within) > 1 && n.ID >= 0 && len(out) < 2*maxDomains {
				out = append(out, domain{profiles.NodeDomain(n.ID), pus})
			}
		}
	}
	return out
}

// bendLimit is the relative distance of a point from the line through its neighbors above which
// more points are measured.
const bendLimit = 0.05

// bends returns the numbers of PUs halfway between each point at which a curve bends and its
// neighbors.
func bends(n []int, y []float64) []int {
	var out []int
	middle := func(i int) {
		if mid := (n[i] + n[i+1]) / 2; mid > n[i] && !slices.Contains(out, mid) {
			out = append(out, mid)
		}
	}
	for i := 1; i+1 < len(n); i++ {
		line := y[i-1] + (y[i+1]-y[i-1])*float64(n[i]-n[i-1])/float64(n[i+1]-n[i-1])
		if math.Abs(line-y[i]) > bendLimit*y[i] {
			middle(i - 1)
			middle(i)
		}
	}
	return out
}

// objectName returns the kind of an object with its OS index, or with its first PU if it has none.
func objectName(k topotree.Kind, id int, cpus topotree.CPUSet) string {
	if id >= 0 {
		return k.String() + " " + strconv.Itoa(id)
	}
	return k.String() + " of PU " + strconv.Itoa(cpus.First())
}

// measureSaturation measures the curve of each domain: the bandwidth of 1 to n of its PUs from
// their nearest memory, then more points where the curve bends.
func (f *full) measureSaturation(ctx context.Context, until time.Time) error {
	if err := f.memory.reason; err != nil {
		return fmt.Errorf("%w: %w", errUnmeasured, err)
	}
	domains := f.saturationDomains()
	sets := f.spreadSets()
	for _, d := range domains {
		for _, n := range f.countsOf(d.pus) {
			sets = append(sets, domain{d.name, d.pus[:n]})
		}
	}
	take := func(workers []int) (float64, error) {
		f.memory.assign(f.pool.PUs(), workers)
		return f.run(f.readFor(workers, domainWindow))
	}
	first := until.Add(-time.Until(until) / 3)
	if err := f.figuresOf(ctx, first, profiles.Saturation, "B/s", sets, take); err != nil {
		return err
	}
	var more []domain
	for _, d := range domains {
		n, y := f.curveOf(d)
		for _, at := range bends(n, y) {
			more = append(more, domain{d.name, d.pus[:at]})
		}
	}
	if len(more) == 0 {
		return nil
	}
	return f.figuresOf(ctx, until, profiles.Saturation, "B/s", more, take)
}

// countsOf returns the numbers of a domain's PUs to measure, including the number of cores.
func (f *full) countsOf(pus []int) []int {
	out := counts(len(pus))
	if cores := f.coresAmong(pus); !slices.Contains(out, cores) {
		out = append(out, cores)
		slices.Sort(out)
	}
	return out
}

// curveOf returns the measured points of a domain's curve.
func (f *full) curveOf(d domain) (n []int, y []float64) {
	for count := range len(d.pus) {
		set := topotree.NewCPUSet(d.pus[:count+1]...)
		for _, s := range f.sets {
			if s.Name == profiles.Saturation && s.CPUs.Equal(set) {
				n, y = append(n, count+1), append(y, s.Median)
				break
			}
		}
	}
	return n, y
}

// figuresOf samples a figure for each set of PUs and adds those with samples.
func (f *full) figuresOf(ctx context.Context, until time.Time, name, unit string, sets []domain,
	take func(workers []int) (float64, error)) error {
	trials := make([]*trial, len(sets))
	for i, s := range sets {
		trials[i] = &trial{workers: f.workersOf(s.pus)}
	}
	err := f.rounds(ctx, trials, until, func(t *trial) error {
		v, err := take(t.workers)
		t.a = append(t.a, v)
		return err
	})
	missing := 0
	for i, t := range trials {
		if len(t.a) == 0 {
			missing++
			continue
		}
		f.sets = append(f.sets, profiles.SetFigure{Name: name, Domain: sets[i].name,
			CPUs: topotree.NewCPUSet(sets[i].pus...), Figure: profiles.NewFigure(unit, t.a)})
	}
	if missing > 0 && err == nil {
		f.notes = append(f.notes, fmt.Sprintf("%s: there was no time for %d of %d sets of PUs", name,
			missing, len(sets)))
	}
	return err
}

// barrierSets returns, for each level of the tree, the PUs of its first node and one PU of each of
// its nodes, and increasing numbers of PUs of the machine.
func (f *full) barrierSets() []domain {
	var out []domain
	seen := map[string]bool{}
	add := func(name string, set topotree.CPUSet) {
		pus := f.coresFirst(set)
		if set = topotree.NewCPUSet(pus...); len(pus) > 1 && !seen[set.Key()] {
			seen[set.Key()] = true
			out = append(out, domain{name, pus})
		}
	}
	tree := f.profile.Machine.Tree
	for d := range tree.Depth() + 1 {
		level := tree.Level(d)
		for _, n := range level {
			if allowed := n.CPUs.Intersect(f.profile.Allowed()); allowed.Count() > 1 {
				name := "machine"
				if n.Kind != topotree.KindMachine {
					name = objectName(n.Kind, n.ID, n.CPUs)
				}
				add(name, allowed)
				break
			}
		}
		var first []int
		for _, n := range level {
			if pus := f.coresFirst(n.CPUs); len(pus) > 0 {
				first = append(first, pus[0])
			}
		}
		add("one PU of each "+level[0].Kind.String(), topotree.NewCPUSet(first...))
	}
	all := f.coresFirst(f.profile.Allowed())
	for _, n := range f.countsOf(all) {
		add(profiles.MachineDomain, topotree.NewCPUSet(all[:n]...))
	}
	return out
}

// barrierTime is the approximate duration of one sample of barriers.
const barrierTime = 500 * time.Microsecond

// measureBarriers measures the barrier of the worker pool on sets of PUs.
func (f *full) measureBarriers(ctx context.Context, until time.Time) error {
	sets := f.barrierSets()
	if len(sets) == 0 {
		return fmt.Errorf("%w: the CPU quota allows one PU only", errUnmeasured)
	}
	slices.SortStableFunc(sets, func(a, b domain) int { return len(a.pus) - len(b.pus) })
	return f.figuresOf(ctx, until, profiles.Barrier, "s", sets, f.barrier)
}

// barrier returns the seconds per barrier from one sample. Ten barriers determine how many fit into
// barrierTime.
func (f *full) barrier(workers []int) (float64, error) {
	if _, err := f.pool.SetActive(workers); err != nil {
		return 0, err
	}
	each := 0.0
	for _, n := range []int{10, 0} {
		if n == 0 {
			n = int(min(max(barrierTime.Seconds()/each, 10), 5000))
		}
		f.pool.Run(func(w *pool.Worker) {
			for range 3 {
				w.Barrier()
			}
			began := time.Now()
			for range n {
				w.Barrier()
			}
			if w.ID() == 0 {
				each = time.Since(began).Seconds() / float64(n)
			}
		})
	}
	return each, nil
}
