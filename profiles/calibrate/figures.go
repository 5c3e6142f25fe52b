package calibrate

import (
	"cmp"
	"fmt"
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
	if err := b.prepareBuffer(); err != nil {
		return nil, err
	}
	var out []*figure
	for _, c := range b.counts() {
		out = append(out, b.readFigure(reader, b.firstLevel(), c, share(b.buffer, b.pool.Size())))
	}
	out = append(out, b.cacheFigures(reader)...)
	for _, c := range b.counts() {
		out = append(out, b.memoryFigure(reader, c))
	}
	load, err := b.loads()
	if err != nil {
		return nil, err
	}
	panels, err := b.panelFigures(host.Best())
	return append(append(out, load), panels...), err
}

// cacheFigures are reads of the second and third level. A region of the third level is at least
// twice as large as the second; numbers of workers for which the buffer is too small for that are
// left out.
func (b *bench) cacheFigures(reader *microkernel.Reader) (out []*figure) {
	const sample = 32 << 20
	c := b.cacheSizes()
	own := share(b.buffer, b.pool.Size())
	for _, n := range b.counts() {
		if c.l2 > 0 {
			out = append(out, b.readFigure(reader, level{"l2", min(c.l2/2, own) &^ 1023, sample}, n, own))
		}
	}
	l2, missing := cmp.Or(c.l2, assumedL2), 0
	for _, n := range b.counts() {
		part := share(b.buffer, n)
		bytes := min(c.l3/2, 8*l2, part) &^ 1023
		switch {
		case c.l3 == 0 || c.l3 < 4*l2:
		case bytes < 2*l2:
			missing++
		default:
			out = append(out, b.readFigure(reader, level{"l3", bytes, sample}, n, part))
		}
	}
	if missing > 0 {
		b.notes = append(b.notes, fmt.Sprintf("the L3 was not read by the %d largest numbers of PUs: the probe has %s "+
			"of memory for all", missing, mem.FormatBytes(int64(b.buffer.Len()))))
	}
	return out
}

// readFigure is reads of a level by the first workers, each of which has a region of the buffer
// that begins at its index times part.
func (b *bench) readFigure(r *microkernel.Reader, l level, workers, part int) *figure {
	f := b.bandwidthFigure(l.name, workers)
	f.work = func(worker int) float64 {
		region := b.buffer.Bytes()[worker*part:][:l.bytes]
		if l.bytes >= 2*callBytes {
			s := newStretch(region, l.total, false)
			return s.pass(&b.stamps[worker].at, func(p []byte) { r.Read(p, 1) })
		}
		perCall := max(1, callBytes/l.bytes)
		calls := max(1, l.total/l.bytes/perCall)
		for range calls {
			r.Read(region, perCall)
		}
		return float64(calls * perCall * l.bytes)
	}
	return f
}

// bandwidthFigure is a figure of bandwidth of the first workers, without its work.
func (b *bench) bandwidthFigure(level string, workers int) *figure {
	first := firstWorkers(workers)
	return &figure{ceiling: profiles.Ceiling{Kind: profiles.Bandwidth, Level: level, PUs: workers,
		CPUs: b.pusOf(first), Figure: profiles.Figure{Unit: "B/s"}}, workers: first}
}

// callBytes bounds one call of generated code to well below 200 microseconds.
const callBytes = 1 << 20

// memorySample is the number of bytes that a worker reads from memory for one sample at most: some
// milliseconds.
const memorySample = 96 << 20

// memoryFigure is reads of memory by the first workers. Each walks through its own share of the
// buffer. Where the last-level caches could hold what the workers read, the share is flushed before
// each pass.
func (b *bench) memoryFigure(r *microkernel.Reader, workers int) *figure {
	caches, part := b.cacheSizes().llc, share(b.buffer, b.pool.Size())
	flush := !leavesCaches(workers*part, caches) && b.flushes
	if !flush && workers == b.pool.Size() && !leavesCaches(workers*part, caches) {
		b.notes = append(b.notes, cacheNote("memory bandwidth", workers*part))
	}
	f := b.bandwidthFigure("memory", workers)
	walk := func(worker int) (stretch, *int) {
		region := b.buffer.Bytes()[worker*part:][:part]
		return newStretch(region, min(part, memorySample), flush), &b.stamps[worker].at
	}
	if flush {
		f.passes = passes(part)
		f.warm = func(worker int) {
			s, at := walk(worker)
			s.prepare(at)
		}
	}
	f.work = func(worker int) float64 {
		s, at := walk(worker)
		return s.pass(at, func(p []byte) { r.Read(p, 1) })
	}
	return f
}

// leastShare is the number of bytes of the buffer that each worker has at least: it holds an L1.
const leastShare = 64 << 10

// prepareBuffer maps the buffer of bandwidth, the budget's rest, and faults it in.
func (b *bench) prepareBuffer() (err error) {
	n := b.pool.Size()
	const hugePage = 2 << 20 // which the size is rounded up to
	if b.buffer, err = b.alloc(max(b.left&^(hugePage-1), n*leastShare), true); err != nil {
		return err
	}
	return b.touch(share(b.buffer, n))
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
