package calibrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// classSets returns the allowed PUs by core type and measured speed, the fastest first.
func (f *full) classSets() []topotree.CPUSet {
	m := f.profile.Machine
	var nodes *profiles.Matrix
	for i := range f.matrices {
		if f.matrices[i].Name == profiles.NodeMatrix {
			nodes = &f.matrices[i]
		}
	}
	var out []topotree.CPUSet
	for _, class := range speedClasses(f.solo, nodes, m) {
		left := class.CPUs
		for _, typ := range m.CoreTypes {
			if part := left.Intersect(typ.CPUs); !part.IsEmpty() {
				out, left = append(out, part), left.Minus(part)
			}
		}
		if !left.IsEmpty() {
			out = append(out, left)
		}
	}
	return out
}

// peakSets returns, for each class, one PU, one core with its siblings, and one PU of each core;
// then one PU of each last-level cache; and all PUs.
func (f *full) peakSets() []domain {
	var out []domain
	seen := map[string]bool{}
	add := func(name string, pus []int) {
		if key := topotree.NewCPUSet(pus...).Key(); len(pus) > 0 && !seen[key] {
			seen[key] = true
			out = append(out, domain{name, pus})
		}
	}
	for _, class := range f.classSets() {
		pus := f.coresFirst(class)
		if len(pus) == 0 {
			continue // the quota excludes the class
		}
		name := fmt.Sprintf("class of PU %d", class.First())
		add(name, pus[:1])
		for _, o := range f.profile.Machine.Objects {
			if o.Kind == topotree.KindCore && o.CPUs.Contains(pus[0]) {
				add(fmt.Sprintf("core of PU %d", pus[0]), f.coresFirst(o.CPUs))
			}
		}
		add(name, pus[:f.coresAmong(pus)])
	}
	add(profiles.MachineDomain, f.oneOfEach(clusterObjects(f.profile.Machine), 1))
	add(profiles.MachineDomain, f.coresFirst(f.profile.Machine.Allowed))
	return out
}

// hasCeiling reports whether Measure has the peak of the same PUs.
func (f *full) hasCeiling(s microkernel.PeakSpec, set domain) bool {
	cpus := topotree.NewCPUSet(set.pus...)
	return slices.ContainsFunc(f.profile.Ceilings, func(c profiles.Ceiling) bool {
		return c.Measured() && c.ISA == s.ISA.String() && c.Type == s.Type && c.CPUs.Equal(cpus)
	})
}

// measurePeaks measures the multiply-add peaks of sets that Measure does not cover.
func (f *full) measurePeaks(ctx context.Context, until time.Time) error {
	host := microkernel.Host()
	type subject struct {
		set  domain
		kind *microkernel.Peak
		work func(int) float64
	}
	var trials []*trial
	of := map[*trial]subject{}
	for _, spec := range microkernel.PeakSpecs(host) {
		k, err := microkernel.NewPeak(spec, host)
		if err != nil {
			return err
		}
		if !spec.ISA.Generates() && len(trials) > 0 {
			continue // plain Go is measured only without generated code
		}
		for _, set := range f.peakSets() {
			if f.hasCeiling(k.Spec, set) {
				continue
			}
			t := &trial{workers: f.workersOf(set.pus)}
			trials, of[t] = append(trials, t), subject{set, k, peakWork(k, shortSample)}
		}
	}
	err := f.rounds(ctx, trials, until, func(t *trial) error {
		rate, err := f.run(&figure{workers: t.workers, work: of[t].work})
		t.a = append(t.a, rate)
		return err
	})
	for _, t := range trials {
		if s := of[t]; len(t.a) > 0 {
			spec := s.kind.Spec
			f.sets = append(f.sets, profiles.SetFigure{Name: profiles.Peak, Domain: s.set.name,
				CPUs: topotree.NewCPUSet(s.set.pus...), ISA: spec.ISA.String(), Type: spec.Type,
				Figure: profiles.NewFigure(peakUnit(spec.Type), t.a)})
		}
	}
	return err
}

// maxFlowNodes limits the nodes between which flows are measured, since pairs grow quadratically.
const maxFlowNodes = 8

// flowSets returns sets of flows that share links: each pair of nodes in both directions, all other
// nodes to each node, and the PUs of each node and of all nodes on interleaved pages.
func (f *full) flowSets() [][]profiles.Flow {
	var nodes []profiles.Flow // each node from its own memory
	for _, r := range f.memory.regions {
		if pus := f.coresFirst(r.cpus); len(pus) > 0 && r.node >= 0 && len(nodes) < maxFlowNodes {
			nodes = append(nodes, profiles.Flow{CPUs: topotree.NewCPUSet(pus...), Node: r.node})
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	var out [][]profiles.Flow
	var all topotree.CPUSet
	for i, a := range nodes {
		all = all.Union(a.CPUs)
		out = append(out, []profiles.Flow{{CPUs: a.CPUs, Node: profiles.Interleaved}})
		var others []profiles.Flow
		for j, b := range nodes {
			if j != i {
				others = append(others, profiles.Flow{CPUs: b.CPUs, Node: a.Node})
			}
			if j < i {
				out = append(out, []profiles.Flow{{CPUs: a.CPUs, Node: b.Node}, {CPUs: b.CPUs, Node: a.Node}})
			}
		}
		if len(nodes) > 2 {
			out = append(out, others)
		}
	}
	if q := f.profile.QuotaPUs(); q > 0 && all.Count() > q {
		return nil // the quota does not permit two active nodes
	}
	return append(out, []profiles.Flow{{CPUs: all, Node: profiles.Interleaved}})
}

// measureFlows measures the total bandwidth of concurrent flows.
func (f *full) measureFlows(ctx context.Context, until time.Time) error {
	var trials []*trial
	of := map[*trial][]profiles.Flow{}
	for _, flows := range f.flowSets() {
		t := &trial{}
		for _, flow := range flows {
			t.workers = append(t.workers, f.workersOf(flow.CPUs.Slice())...)
		}
		trials, of[t] = append(trials, t), flows
	}
	if len(trials) == 0 {
		return nil // one memory node
	}
	err := f.rounds(ctx, trials, until, func(t *trial) error {
		rate, err := f.run(f.readFlows(of[t]))
		t.a = append(t.a, rate)
		return err
	})
	for _, t := range trials {
		if len(t.a) > 0 {
			f.sets = append(f.sets, profiles.SetFigure{Name: profiles.Flows, Domain: profiles.MachineDomain,
				CPUs: f.pusOf(t.workers), Flows: of[t], Figure: profiles.NewFigure("B/s", t.a)})
		}
	}
	return err
}

// readFlows divides the memory among the workers of flows and returns a figure of their reads.
// Interleaved pages are read as one chunk of each node's region after another.
func (f *full) readFlows(flows []profiles.Flow) *figure {
	mixed := map[int]bool{}
	ends := map[int][]int{}
	var all []int
	for _, flow := range flows {
		workers := f.workersOf(flow.CPUs.Slice())
		all = append(all, workers...)
		for _, w := range workers {
			mixed[w] = flow.Node == profiles.Interleaved
		}
		if flow.Node != profiles.Interleaved {
			ends[flow.Node] = append(ends[flow.Node], workers...)
		}
	}
	for _, r := range f.memory.regions {
		if list := ends[r.node]; len(list) > 0 {
			f.memory.divide(r, list)
		}
	}
	fig := f.readFor(all, domainWindow)
	near, warm := fig.work, fig.warm
	fig.work = func(w int) float64 {
		if !mixed[w] {
			return near(w)
		}
		return f.readMixed(w)
	}
	if warm == nil {
		return fig
	}
	fig.warm = func(w int) {
		if !mixed[w] {
			warm(w)
			return
		}
		f.stamps[w].at = 0
		for i := range f.memory.regions {
			mem.Flush(f.mixedPart(i, w))
		}
	}
	return fig
}

// mixedPart returns the part of a region that a worker reads for interleaved pages.
func (f *full) mixedPart(region, worker int) []byte {
	b := f.memory.regions[region].bytes()
	part := max(readChunk, len(b)/f.pool.Size()&^(readChunk-1))
	at := min(worker*part, len(b)-part)
	return b[at:][:part]
}

// readMixed reads a chunk of a worker's part of each region after another; see readFor.
func (f *full) readMixed(w int) float64 {
	at, done := &f.stamps[w].at, 0
	for began := time.Now(); time.Since(began) < domainWindow; done += readChunk {
		i := done / readChunk % len(f.memory.regions)
		part := f.mixedPart(i, w)
		if *at+readChunk > len(part) {
			if f.memory.flush && i == 0 {
				break
			}
			*at = 0
		}
		f.memory.reader.Read(part[*at:][:readChunk], 1)
		if i == len(f.memory.regions)-1 {
			*at += readChunk
		}
	}
	return float64(done)
}
