package tables

import (
	"sandwich/microkernel"
	"sandwich/roofline"
	"sandwich/runtime/mem"
	"sandwich/topotree"
	"sandwich/tuner/measure/kernels"
)

// ceiling returns the ceiling of n of some PUs that work together, or the zero Ceiling if the
// profile lacks a figure. The bandwidth of a model that fits in the last-level cache is that of the
// cache.
func (b *Problems) ceiling(c microkernel.Compute, pus topotree.CPUSet, n int) roofline.Ceiling {
	level := "memory"
	if b.Partition.ModelBytes() <= b.Partition.LastLevel() {
		level = "l3"
	}
	path := roofline.Path{ISA: b.Partition.Plan.ISAOf("").String(), Type: c.String()}
	m := roofline.NewMachine(b.Partition.Subject.Profile)
	read, peak := m.Read(pus, level), m.Peak(pus, path)
	if !read.Known() || !peak.Known() {
		return roofline.Ceiling{}
	}
	part := float64(n) / float64(pus.Count())
	return roofline.Ceiling{Bandwidth: part * read.Value, Targets: []roofline.Target{{Name: path.String(),
		Peak: part * peak.Value}}}
}

// caches returns the bytes of L1 and L2 available to one of some PUs; 0 if unknown.
func (b *Problems) caches(pus topotree.CPUSet) (l1, l2 int) {
	host := b.Partition.Subject.Profile
	l1 = int(min(host.Host.L1D, 1<<20))
	for _, o := range host.Machine.Objects {
		if o.Kind == topotree.KindL2 && o.CPUs.Contains(pus.First()) {
			sharers := o.CPUs.Intersect(pus).Count()
			l2 = int(min(o.Bytes, 64<<20)) / max(1, sharers)
		}
	}
	return l1, l2
}

// BenchSize returns the sizes of the operands: weights as cold as the model's own in serving,
// within a quarter of the free memory. The partition must be open.
func (b *Problems) BenchSize() kernels.GemmSize {
	p := b.Partition
	s := kernels.GemmSize{Spare: kernels.ScratchBytes, Ranks: len(p.Plan.Ranks), Groups: p.Workers.Grouping()}
	limit := int64(4 << 30)
	if free := mem.Available(); free > 0 {
		limit = free / 4
	}
	s.Round = int(min(p.ColdBytes(20<<20, b.Budget), limit))
	largest := 0
	for _, w := range p.Shapes {
		s.Copy = max(s.Copy, min(kernels.PackedBytes(w.WeightKey), kernels.MaxCopy))
		for _, ph := range p.Served() {
			a := b.anchors(&Job{Phase: ph, Shape: w})
			m := a[len(a)-1]
			s.Input = max(s.Input, m*mem.RowStride(w.K))
			s.Rounded = max(s.Rounded, kernels.RoundedBytes(w.Compute, m, w.K))
			s.Cells = max(s.Cells, m*mem.RowStride(w.N))
			largest = max(largest, m)
		}
	}
	s.Cells = max(min(s.Cells, kernels.OutputCells), largest*mem.RowStride(microkernel.PanelWidth))
	return s
}

// widestOutput returns the maximum number of columns of the output of m rows.
func widestOutput(m int) int {
	return max(microkernel.PanelWidth, kernels.OutputCells/m-2*microkernel.PanelWidth)
}
