package tuner

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/mem"
	"sandwich/topotree"
	"sandwich/tuner/measure"
	"sandwich/tuner/ranking"
)

// ceiling returns the ceiling of n of some PUs that work together, or the zero Ceiling if the
// profile lacks a figure. The bandwidth of a model that fits in the last-level cache is that of the
// cache.
func (t *partition) ceiling(c microkernel.Compute, pus plans.PUSet, n int) roofline.Ceiling {
	level := "memory"
	if modelBytes(t.shape) <= t.lastLevel() {
		level = "l3"
	}
	set, path := topotree.NewCPUSet(pus...), roofline.Path{ISA: t.isa.String(), Type: c.String()}
	m := roofline.NewMachine(t.o.Profile)
	read, peak := m.Read(set, level), m.Peak(set, path)
	if !read.Known() || !peak.Known() {
		return roofline.Ceiling{}
	}
	part := float64(n) / float64(len(pus))
	return roofline.Ceiling{Bandwidth: part * read.Value, Targets: []roofline.Target{{Name: path.String(),
		Peak: part * peak.Value}}}
}

// lastLevel is measure.LastLevel of the PUs that may be used.
func (t *partition) lastLevel() int64 { return measure.LastLevel(t.o.Profile, t.usable()) }

// caches returns the bytes of L1 and L2 available to one PU of a set; 0 if unknown.
func (t *partition) caches(set ranking.ActiveSet) (l1, l2 int) {
	l1 = int(min(t.o.Profile.Host.L1D, 1<<20))
	for _, o := range t.o.Profile.Machine.Objects {
		if o.Kind == topotree.KindL2 && o.CPUs.Contains(set.PUs[0]) {
			sharers := o.CPUs.Intersect(topotree.NewCPUSet(set.PUs...)).Count()
			l2 = int(min(o.Bytes, 64<<20)) / max(1, sharers)
		}
	}
	return l1, l2
}

// benchSize returns the sizes of the operands: weights as cold as the model's own in serving,
// within a quarter of the free memory.
func (t *partition) benchSize() measure.GemmSize {
	s := measure.GemmSize{Spare: measure.ScratchBytes, Ranks: len(t.def.Ranks), Groups: t.workers.Grouping()}
	limit := int64(4 << 30)
	if free := mem.Available(); free > 0 {
		limit = free / 4
	}
	s.Round = int(min(t.coldBytes(20<<20), limit))
	most := 0
	for _, w := range t.shapes {
		s.Copy = max(s.Copy, min(measure.PackedBytes(w.WeightKey), measure.MaxCopy))
		for _, phase := range t.served() {
			a := t.anchors(&job{phase: phase, key: w.WeightKey})
			m := a[len(a)-1]
			s.Input = max(s.Input, m*mem.RowStride(w.K))
			s.Rounded = max(s.Rounded, measure.RoundedBytes(w.Compute, m, w.K))
			s.Cells = max(s.Cells, m*mem.RowStride(w.N))
			most = max(most, m)
		}
	}
	s.Cells = max(min(s.Cells, measure.OutputCells), most*mem.RowStride(microkernel.PanelWidth))
	return s
}

// widestOutput returns the maximum number of columns of the output of m rows.
func (t *partition) widestOutput(m int) int {
	return max(microkernel.PanelWidth, measure.OutputCells/m-2*microkernel.PanelWidth)
}

// randomBytes returns the size of a model with random weights.
func (t *partition) randomBytes() int64 {
	most := t.coldBytes(8 << 20)
	if free := mem.Available(); free > 0 {
		most = min(most, free/4)
	}
	return most
}

// coldBytes returns the bytes of weights through which forwards and trials cycle, so that the
// weights are as cold as in serving: all of the model's, or a multiple of the last-level cache that
// evicts the previous round. rate is the number of bytes that may be made per second of the budget.
func (t *partition) coldBytes(rate float64) int64 {
	all := modelBytes(t.shape)
	if last := t.lastLevel(); all > last {
		all = min(all, measure.RoundBytes(t.o.Profile, t.usable()))
	}
	return min(all, max(64<<20, int64(rate*t.o.Budget.Seconds())))
}
