package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// domainWindow is how long a set of PUs reads for one sample.
const domainWindow = 4 * time.Millisecond

// measureNodes fills NodeMatrix: all PUs of node i read the memory of node j. Items are the nodes
// that were reached; a row of a node without PUs stays 0.
func (f *full) measureNodes(ctx context.Context, until time.Time) error {
	regions := f.memory.regions
	if len(regions) == 0 || regions[0].node < 0 {
		return fmt.Errorf("%w: the machine describes no memory node that can be read", errUnmeasured)
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
	least := math.MaxInt
	var noises []float64
	for _, t := range trials {
		least = min(least, len(t.a))
		if len(t.a) > 0 {
			fig := profiles.NewFigure("B/s", t.a)
			m.Rows[at[t].i][at[t].j], m.Noises[at[t].i][at[t].j] = fig.Median, fig.Noise
			noises = append(noises, fig.Noise)
		}
	}
	if len(noises) > 0 {
		m.N, m.Noise = max(1, least), median(noises)
		f.matrices = append(f.matrices, m)
	}
	return err
}

// domain is a named set of PUs, in the order in which they are put to work.
type domain struct {
	name string
	pus  []int
}

// maxDomains of one kind are measured, evenly over the machine.
const maxDomains = 16

// saturationDomains are the NUMA nodes, and the last-level caches where they hold other PUs than a
// node.
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

// hiddenGroups are the innermost clusters that the matrices so far show and the tree does not.
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

// spreadSets are, for each node of several last-level caches, one PU and two PUs of each: sets of
// one size with the first PUs of the node, which share fewer caches.
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

// bendLimit is by how much of its height a curve may miss the line through its neighbors before
// more points are taken.
const bendLimit = 0.05

// bends are the numbers of PUs in the middle of the gaps beside each point at which a curve bends.
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

// objectName is the kind with the system's number, or the first PU where there is none.
func objectName(k topotree.Kind, id int, cpus topotree.CPUSet) string {
	if id >= 0 {
		return k.String() + " " + strconv.Itoa(id)
	}
	return k.String() + " of PU " + strconv.Itoa(cpus.First())
}

// measureSaturation takes the curve of each domain: what 1 to n of its PUs read from the memory
// nearest to them; then more points where it bends.
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

// countsOf are the numbers of a domain's PUs that are measured, one on every core among them.
func (f *full) countsOf(pus []int) []int {
	out := counts(len(pus))
	if cores := f.coresAmong(pus); !slices.Contains(out, cores) {
		out = append(out, cores)
		slices.Sort(out)
	}
	return out
}

// curveOf is what was measured of the first PUs of a domain.
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

// figuresOf samples a figure of each set of PUs and adds those that got a sample.
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

// barrierSets are, for each level of the tree, the PUs of its first node and one PU of each of its
// nodes, and the first PUs of the machine in growing numbers.
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
	for _, n := range f.countsOf(all) { // how it grows
		add(profiles.MachineDomain, topotree.NewCPUSet(all[:n]...))
	}
	return out
}

// barrierTime is about how long barriers are counted for one sample.
const barrierTime = 500 * time.Microsecond

// measureBarriers times the barrier of the worker pool on sets of PUs.
func (f *full) measureBarriers(ctx context.Context, until time.Time) error {
	sets := f.barrierSets()
	if len(sets) == 0 {
		return fmt.Errorf("%w: the CPU quota pays for one PU", errUnmeasured)
	}
	slices.SortStableFunc(sets, func(a, b domain) int { return len(a.pus) - len(b.pus) })
	return f.figuresOf(ctx, until, profiles.Barrier, "s", sets, f.barrier)
}

// barrier samples the seconds from one barrier to the next: as many as barrierTime holds, judged by
// the first ten.
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
