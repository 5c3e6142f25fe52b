package calibrate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// peakTime is the duration of one sample of a peak: long compared with the skew between workers,
// short compared with a time slice of the scheduler.
const peakTime = 3 * time.Millisecond

// peakUnit returns the unit of the peak of a data type.
func peakUnit(typ string) string {
	if strings.HasPrefix(typ, microkernel.ComputeInt8.String()) {
		return "OP/s"
	}
	return "FLOP/s"
}

// peakWork returns a function that multiplies for a time in calls of some ten microseconds.
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

// level is a level of the memory hierarchy to read from.
type level struct {
	name  string
	bytes int // region of each worker
	total int // bytes that a worker reads per sample
}

// readFigure returns a figure of reads of a level by the first workers. The region of worker i
// starts at i*part in the buffer.
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

// bandwidthFigure returns a figure of bandwidth of the first workers, without its work.
func (b *bench) bandwidthFigure(level string, workers int) *figure {
	first := firstWorkers(workers)
	return &figure{ceiling: profiles.Ceiling{Kind: profiles.Bandwidth, Level: level, PUs: workers,
		CPUs: b.pusOf(first), Figure: profiles.Figure{Unit: "B/s"}}, workers: first}
}

// memorySample is the maximum number of bytes that a worker reads from memory per sample.
const memorySample = 96 << 20

// memoryFigure returns a figure of memory reads by the first workers, each from its share of the
// buffer. If the last-level caches could hold what the workers read, shares are flushed before each
// pass.
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

// minShare is the minimum number of bytes of the buffer per worker, enough for an L1.
const minShare = 64 << 10

// prepareBuffer maps the buffer for bandwidth with the rest of the budget and faults it in.
func (b *bench) prepareBuffer() (err error) {
	n := b.pool.Size()
	const hugePage = 2 << 20 // sizes are rounded up to it
	if b.buffer, err = b.alloc(max(b.left&^(hugePage-1), n*minShare), true); err != nil {
		return err
	}
	return b.touch(share(b.buffer, n))
}

// touch lets each worker fault in its share, so that the share is placed on the worker's node.
func (b *bench) touch(share int) error {
	if _, err := b.pool.SetActive(firstWorkers(b.pool.Size())); err != nil {
		return err
	}
	b.pool.Run(func(w *pool.Worker) { b.buffer.Touch(w.Index()*share, (w.Index()+1)*share) })
	return nil
}

// cacheSizes holds cache sizes in bytes, 0 if unknown.
type cacheSizes struct {
	l1, l2 int // per core
	l3     int // L3 divided by the cores that share it
	llc    int // all last-level caches of the measured PUs together
}

// cacheSizes returns the cache sizes of the first worker's PU.
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

// coresIn returns the number of cores within a set, or of PUs if no core is described.
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

// loads returns a figure of one worker's L1 loads. The worker needs a buffer.
func (b *bench) loads() (*figure, error) {
	loader, err := microkernel.NewLoader(microkernel.Host().Best(), microkernel.Host())
	if err != nil {
		return nil, err
	}
	l := b.firstLevel()
	l.name = profiles.L1Loads
	return b.readFigure(loader, l, 1, 0), nil
}

// firstLevel returns a region of three quarters of L1.
func (b *bench) firstLevel() level { return level{"l1", b.cacheSizes().l1 / 4 * 3 &^ 1023, 64 << 20} }

// cacheFigures returns figures of L2 and L3 reads. A region for L3 is at least twice as large as
// L2; numbers of workers for which the buffer is too small are left out.
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

// assumedL2 is the size of an L2 cache of unknown size.
const assumedL2 = 1 << 20
