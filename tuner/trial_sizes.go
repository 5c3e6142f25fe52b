package tuner

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/mem"
	"sandwich/topotree"
	"sandwich/tuner/measure"
)

// ceiling of n of some PUs that work at once; the zero Ceiling where the profile lacks a ceiling. A model
// that fits the last-level cache has its bandwidth for a ceiling.
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

// caches are the bytes of L1 and L2 that one PU of a set may count on; 0 for what the machine does
// not tell.
func (t *partition) caches(set activeSet) (l1, l2 int) {
	l1 = int(min(t.o.Profile.Host.L1D, 1<<20))
	for _, o := range t.o.Profile.Machine.Objects {
		if o.Kind == topotree.KindL2 && o.CPUs.Contains(set.PUs[0]) {
			sharers := o.CPUs.Intersect(topotree.NewCPUSet(set.PUs...)).Count()
			l2 = int(min(o.Bytes, 64<<20)) / max(1, sharers)
		}
	}
	return l1, l2
}

// benchSize plans the operands: weights to go round that are as cold as the model's own are in
// serving, within a quarter of the memory that is left.
func (t *partition) benchSize() measure.GemmSize {
	s := measure.GemmSize{Spare: measure.ScratchBytes, Ranks: len(t.def.Ranks), Groups: t.workers.Grouping()}
	limit := int64(4 << 30)
	if free := mem.Available(); free > 0 {
		limit = free / 4
	}
	s.Round = int(min(t.coldBytes(20<<20), limit))
	most := 0
	for _, w := range t.shapes {
		s.Copy = max(s.Copy, min(measure.PackedBytes(w.WeightKey), maxCopy))
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

// maxCopy bounds the weights of one trial, in bytes: reading them takes milliseconds on any
// machine.
const maxCopy = 256 << 20

// widestOutput is how many columns the output of m rows may have.
func (t *partition) widestOutput(m int) int {
	return max(microkernel.PanelWidth, measure.OutputCells/m-2*microkernel.PanelWidth)
}

// randomBytes is how large a model with random weights is made.
func (t *partition) randomBytes() int64 {
	most := t.coldBytes(8 << 20)
	if free := mem.Available(); free > 0 {
		most = min(most, free/4)
	}
	return most
}

// coldBytes is how many bytes of weights forwards and trials go round so that the weights are as
// cold as in serving: all of the model's, or as many as leave nothing of the last round in the
// last-level cache. Measured: going round 1.5 times that cache, every third byte was still found in
// it. rate is how many bytes may be made for each second of the budget.
func (t *partition) coldBytes(rate float64) int64 {
	all := modelBytes(t.shape)
	if last := t.lastLevel(); all > last {
		all = min(all, measure.RoundBytes(t.o.Profile, t.usable()))
	}
	return min(all, max(64<<20, int64(rate*t.o.Budget.Seconds())))
}
