package tuner

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/exec"
	"sandwich/runtime/mem"
	"sandwich/topotree"
	"sandwich/tuner/service"
)

// computeType is the data type of most of the arithmetic, as ceilings name it.
func (t *tuning) computeType() string {
	return t.def.Arithmetic()
}

// roof of n of some PUs that work at once; the zero Roof where the profile lacks a ceiling. A model
// that fits the last-level cache has its bandwidth for a roof.
func (t *tuning) roof(c microkernel.Compute, pus plans.PUSet, n int) roofline.Roof {
	level := "memory"
	if modelBytes(t.shape) <= t.lastLevel() {
		level = "l3"
	}
	set, path := topotree.NewCPUSet(pus...), roofline.Path{ISA: t.isa.String(), Type: c.String()}
	m := roofline.NewMachine(t.o.Profile)
	read, peak := m.Read(set, level), m.Peak(set, path)
	if !read.Known() || !peak.Known() {
		return roofline.Roof{}
	}
	part := float64(n) / float64(len(pus))
	return roofline.Roof{Bandwidth: part * read.Value, Targets: []roofline.Target{{Name: path.String(),
		Peak: part * peak.Value}}}
}

// lastLevel is lastLevel of the PUs that may be used.
func (t *tuning) lastLevel() int64 { return lastLevel(t.o.Profile, t.usable()) }

// lastLevel is the size of all last-level caches that some PUs share, 0 when the machine does not
// tell.
func lastLevel(host *profiles.Profile, pus []int) int64 {
	usable := topotree.NewCPUSet(pus...)
	for _, kind := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		var sum int64
		for _, o := range host.Machine.Objects {
			if o.Kind == kind && o.CPUs.Intersects(usable) {
				sum += o.Bytes
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// caches are the bytes of L1 and L2 that one PU of a set may count on; 0 for what the machine does
// not tell.
func (t *tuning) caches(set service.Set) (l1, l2 int) {
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
func (t *tuning) benchSize() benchSize {
	s := benchSize{spare: scratchBytes, ranks: len(t.def.Ranks), groups: t.workers.Grouping()}
	room := int64(4 << 30)
	if free := mem.Available(); free > 0 {
		room = free / 4
	}
	s.round = int(min(t.coldBytes(20<<20), room))
	most := 0
	for _, w := range t.pieces {
		s.copy = max(s.copy, min(packedBytes(w.WeightKey), maxCopy))
		for _, phase := range []int{prefill, decode} {
			a := t.anchors(&job{phase: phase, key: w.WeightKey})
			m := a[len(a)-1]
			s.input = max(s.input, m*exec.RowStride(w.K))
			s.rounded = max(s.rounded, roundedBytes(w.Compute, m, w.K))
			s.cells = max(s.cells, m*exec.RowStride(w.N))
			most = max(most, m)
		}
	}
	s.cells = max(min(s.cells, outputCells), most*exec.RowStride(microkernel.PanelWidth))
	return s
}

// maxCopy bounds the weights of one trial, in bytes: reading them takes milliseconds on any
// machine.
const maxCopy = 256 << 20

// widestOutput is how many columns the output of m rows may have.
func (t *tuning) widestOutput(m int) int {
	return max(microkernel.PanelWidth, outputCells/m-2*microkernel.PanelWidth)
}

// randomBytes is how large a model with random weights is made.
func (t *tuning) randomBytes() int64 {
	most := t.coldBytes(8 << 20)
	if free := mem.Available(); free > 0 {
		most = min(most, free/4)
	}
	return most
}

// leavesCache times the last-level cache is what a round must be for nothing of the last one to be
// left there.
const (
	leavesCache = 4
	leastCache  = 64 << 20 // where the machine does not tell
)

// coldBytes is how many bytes of weights forwards and trials go round so that the weights are as
// cold as in serving: all of the model's, or as many as leave nothing of the last round in the
// last-level cache. Measured: going round 1.5 times that cache, every third byte was still found in
// it. rate is how many bytes may be made for each second of the budget.
func (t *tuning) coldBytes(rate float64) int64 {
	all := modelBytes(t.shape)
	if last := t.lastLevel(); all > last {
		all = min(all, leavesCache*max(last, leastCache))
	}
	return min(all, max(64<<20, int64(rate*t.o.Budget.Seconds())))
}
