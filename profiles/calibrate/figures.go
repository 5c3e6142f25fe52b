package calibrate

import (
	"slices"
	"strings"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// figures lists everything the quick probe measures.
func (b *bench) figures() ([]*figure, error) {
	out, err := b.computeFigures()
	if err != nil {
		return nil, err
	}
	bw, err := b.bandwidthFigures()
	return append(out, bw...), err
}

// peakTime is how long a worker multiplies for one sample: long against the skew between workers,
// short against a scheduler's time slice.
const peakTime = 3 * time.Millisecond

// computeFigures are the multiply-add peaks. Plain Go counts only where there is nothing else, as
// where the system forbids executable memory.
func (b *bench) computeFigures() ([]*figure, error) {
	var out []*figure
	for _, s := range microkernel.PeakSpecs(microkernel.Host()) {
		peak, generated, err := b.peakFigures(s, peakTime)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 || generated {
			out = append(out, peak...)
		}
	}
	attend, err := b.attendFigures(microkernel.Host().Best(), peakTime)
	return append(out, attend...), err
}

// peakFigures are one peak with each number of PUs; that of plain Go, which is not generated code,
// where the system forbids executable memory.
func (b *bench) peakFigures(s microkernel.PeakSpec, window time.Duration) (out []*figure, generated bool, err error) {
	// of these the ratio is all that counts, and a unit that is wrong is one that is not used
	alone := slices.Contains(microkernel.Int8Types(), s.Type)
	k, err := microkernel.NewPeak(s, microkernel.Host())
	if err != nil && alone {
		b.notes = append(b.notes, err.Error())
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	if k.Spec != s && len(b.notes) == 0 {
		b.notes = append(b.notes, "this system forbids executable memory to the process: the figures are those "+
			"of plain Go")
	}
	unit := peakUnit(k.Spec.Type)
	add := func(workers []int) {
		out = append(out, &figure{
			ceiling: profiles.Ceiling{Kind: profiles.Compute, ISA: k.Spec.ISA.String(), Type: k.Spec.Type,
				PUs:  len(workers),
				CPUs: b.pusOf(workers), Figure: profiles.Figure{Unit: unit}},
			workers: workers, work: peakWork(k, window),
		})
	}
	if alone {
		add(firstWorkers(1))
		return out, k.Spec.ISA.Generates(), nil
	}
	for _, n := range b.counts() {
		add(firstWorkers(n))
	}
	for _, w := range b.otherTypes() {
		add([]int{w})
	}
	return out, k.Spec.ISA.Generates(), nil
}

// otherTypes are the first worker of each core type but that of the first worker.
func (b *bench) otherTypes() []int {
	var out []int
	pus := b.pool.PUs()
	for _, t := range b.profile.Machine.CoreTypes {
		if i := slices.IndexFunc(pus, t.CPUs.Contains); i > 0 && !t.CPUs.Contains(pus[0]) {
			out = append(out, i)
		}
	}
	return out
}

// peakUnit is what the peak of a data type counts.
func peakUnit(typ string) string {
	if strings.HasPrefix(typ, microkernel.ComputeInt8.String()) {
		return "OP/s"
	}
	return "FLOP/s"
}

// peakWork multiplies for a while in calls of some ten microseconds.
func peakWork(k *microkernel.Peak, window time.Duration) func(int) float64 {
	iters := min(2000, max(1, 32<<20/k.Ops))
	return func(int) float64 {
		calls := 0
		for began := time.Now(); time.Since(began) < window; calls++ {
			k.Run(iters)
		}
		return float64(calls) * float64(iters) * float64(k.Ops)
	}
}

// level is a place to read from.
type level struct {
	name  string
	bytes int // each worker's own region
	total int // bytes a worker reads for one sample
}

// bandwidthFigures are reads of each worker's own region of one buffer, sized for a level of the
// hierarchy.
func (b *bench) bandwidthFigures() ([]*figure, error) {
	host := microkernel.Host()
	reader, err := microkernel.NewReader(host.Best(), host)
	if err != nil {
		return nil, err
	}
	levels, err := b.levels()
	if err != nil {
		return nil, err
	}
	n := b.pool.Size()
	share := b.buffer.Len() / n &^ (1<<12 - 1)
	var out []*figure
	for _, l := range levels {
		work := b.readWork(reader, l, share)
		for _, c := range b.counts() {
			out = append(out, b.readFigure(l, c, work))
		}
	}
	load, err := b.loads()
	if err != nil {
		return nil, err
	}
	panels, err := b.panelFigures(host.Best())
	return append(append(out, load), panels...), err
}

// readFigure is reads of a level by the first workers.
func (b *bench) readFigure(l level, workers int, work func(int) float64) *figure {
	first := firstWorkers(workers)
	return &figure{ceiling: profiles.Ceiling{Kind: profiles.Bandwidth, Level: l.name, PUs: workers,
		CPUs: b.pusOf(first), Figure: profiles.Figure{Unit: "B/s"}}, workers: first, work: work}
}

// callBytes bounds one call of generated code to well below 200 microseconds.
const callBytes = 1 << 20

// memorySample is what a worker reads from memory for one sample: some milliseconds.
const memorySample = 96 << 20

// readWork reads a worker's region round and round, going on where the sample before ended.
func (b *bench) readWork(r *microkernel.Reader, l level, share int) func(int) float64 {
	return func(worker int) float64 {
		region := b.buffer.Bytes()[worker*share:][:l.bytes]
		if l.bytes < 2*callBytes {
			perCall := max(1, callBytes/l.bytes)
			calls := max(1, l.total/l.bytes/perCall)
			for range calls {
				r.Read(region, perCall)
			}
			return float64(calls * perCall * l.bytes)
		}
		at := &b.stamps[worker].at
		for done := 0; done < l.total; done += callBytes {
			if *at+callBytes > l.bytes {
				*at = 0
			}
			r.Read(region[*at:][:callBytes], 1)
			*at += callBytes
		}
		return float64((l.total + callBytes - 1) / callBytes * callBytes)
	}
}

// levels allocates the buffer and says what is read of it. Memory is a region three times the
// last-level caches, which samples walk through one after the other, so that none finds in a cache
// what another has read.
func (b *bench) levels() ([]level, error) {
	c := b.cacheSizes()
	n := b.pool.Size()
	want := max(3*c.llc, n*(8<<20), 256<<20)
	limit := int(max(mem.Available()/3, 64<<20))
	if mem.Available() < 0 {
		limit = 256 << 20
	}
	total := min(want, limit, 1<<30+n*(8<<20))
	if total < 2*c.llc {
		b.notes = append(b.notes, "memory bandwidth was read from "+mem.FormatBytes(int64(total))+
			", which the last-level caches partly hold: the figure is an upper bound")
	}
	buf, err := mem.Alloc(total, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, err
	}
	b.buffer = buf
	share := buf.Len() / n &^ (1<<12 - 1)
	if err := b.touch(share); err != nil {
		return nil, err
	}
	levels := []level{b.firstLevel()}
	if c.l2 > 0 {
		levels = append(levels, level{"l2", c.l2 / 2 &^ 1023, 32 << 20})
	}
	if c.l3 > 0 && c.l3 >= 4*c.l2 {
		levels = append(levels, level{"l3", min(c.l3/2, 8*c.l2, share) &^ 1023, 32 << 20})
	}
	return append(levels, level{"memory", share, min(share, memorySample)}), nil
}

// touch lets each worker fault in its own share, so that it lies on the worker's node.
func (b *bench) touch(share int) error {
	if _, err := b.pool.SetActive(firstWorkers(b.pool.Size())); err != nil {
		return err
	}
	b.pool.Run(func(w *pool.Worker) { b.buffer.Touch(w.Index()*share, (w.Index()+1)*share) })
	return nil
}

// cacheSizes in bytes; 0 where the machine does not tell.
type cacheSizes struct {
	l1, l2 int // that one core has to itself
	l3     int // one core's part of its L3
	llc    int // all last-level caches of the measured PUs together
}

func (b *bench) cacheSizes() cacheSizes {
	m := b.profile.Machine
	c := cacheSizes{l1: 32 << 10}
	if b.profile.Host.L1D > 0 {
		c.l1 = int(min(b.profile.Host.L1D, 1<<20))
	}
	used := topotree.NewCPUSet(b.pool.PUs()...)
	first := b.pool.PUs()[0]
	sums := map[topotree.Kind]int64{}
	for _, o := range m.Objects {
		if o.Bytes <= 0 || !o.CPUs.Intersects(used) {
			continue
		}
		sums[o.Kind] += o.Bytes
		if !o.CPUs.Contains(first) {
			continue
		}
		switch part := int(min(o.Bytes, 1<<32)) / max(1, coresIn(m, o.CPUs)); o.Kind {
		case topotree.KindL2:
			c.l2 = part
		case topotree.KindL3:
			c.l3 = part
		}
	}
	for _, k := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		if sums[k] > 0 {
			c.llc = int(min(sums[k], 1<<34))
			break
		}
	}
	return c
}

// coresIn counts the cores within a set; where no core is described every PU is one.
func coresIn(m *topotree.Machine, set topotree.CPUSet) int {
	n := 0
	for _, o := range m.Objects {
		if o.Kind == topotree.KindCore && o.CPUs.In(set) {
			n++
		}
	}
	if n == 0 {
		return set.Count()
	}
	return n
}
