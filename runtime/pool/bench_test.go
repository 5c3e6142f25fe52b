package pool

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// allCPUs returns a pinned pool with a worker on every CPU that this process may use.
func allCPUs(b *testing.B) *Pool {
	allowed, err := sys.AllowedPUs()
	if err != nil {
		b.Fatal(err)
	}
	return open(b, len(allowed), Options{Pin: true})
}

func reportMedian(b *testing.B, unit string, samples []time.Duration) {
	slices.Sort(samples)
	b.ReportMetric(float64(samples[len(samples)/2])/1e3, "us-median-"+unit)
	b.ReportMetric(float64(samples[len(samples)/20])/1e3, "us-p5-"+unit)
	b.ReportMetric(float64(samples[len(samples)*9/10])/1e3, "us-p90-"+unit)
}

// BenchmarkBarrier reports the median of batches as well as the mean, which noisy neighbors affect
// on a shared machine.
func BenchmarkBarrier(b *testing.B) {
	const batch = 100
	p := allCPUs(b)
	b.ReportAllocs()
	samples := make([]time.Duration, 0, b.N/batch+1)
	p.Run(func(w *Worker) {
		for range b.N/batch + 1 {
			began := p.now()
			for range batch {
				w.Barrier()
			}
			if w.ID() == 0 {
				samples = append(samples, (p.now()-began)/batch)
			}
		}
	})
	reportMedian(b, "barrier", samples)
}

func BenchmarkLocalBarrierAlone(b *testing.B) {
	p := allCPUs(b)
	if err := p.regroup([][]int{{0}}); err != nil {
		b.Fatal(err)
	}
	p.Run(func(w *Worker) {
		for i := range b.N {
			if i%4000 == 0 {
				w.Barrier()
			}
			w.LocalBarrier()
		}
	})
}

func BenchmarkNext(b *testing.B) {
	p := allCPUs(b)
	var c Counter
	p.Run(func(w *Worker) {
		for done := 0; done < b.N; done += 1000 {
			for _, _, ok := w.Next(&c, 1000, 1); ok; _, _, ok = w.Next(&c, 1000, 1) {
				continue
			}
			w.Barrier()
		}
	})
}

// BenchmarkRun measures runs from a goroutine that is not a worker, one after the other.
func BenchmarkRun(b *testing.B) {
	p := allCPUs(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Run(func(*Worker) {})
	}
}

func BenchmarkLeaderRun(b *testing.B) {
	p := allCPUs(b)
	b.ReportAllocs()
	var begin, start []time.Duration
	p.Lead(func(l *Leader) {
		var at stamps
		fn := at.probe
		for b.Loop() {
			began := p.now()
			l.Run(fn)
			begin = append(begin, p.now()-began)
			for i := range p.Size() {
				at[0].begin = max(at[0].begin, at[i].begin)
			}
			start = append(start, at[0].begin-began)
		}
	})
	reportMedian(b, "whole", begin)
	reportMedian(b, "start", start)
}

// stamps are the start and end of the op on each worker.
type stamps [64]struct {
	begin, end time.Duration
	_          [cacheLine]byte
}

// probe is the op of the switch benchmarks.
func (s *stamps) probe(w *Worker) {
	at := &s[w.Index()]
	at.begin = w.waiter.pool.now()
	at.end = w.waiter.pool.now()
}

// gap returns the time from the end of the last op on the workers of one run to the start of the
// next one on all workers of another.
func gap(before, after *stamps, from, to int) time.Duration {
	var end, begin time.Duration
	for i := range from {
		end = max(end, before[i].end)
	}
	for i := range to {
		begin = max(begin, after[i].begin)
	}
	return begin - end
}

// benchSwitch measures the hot switch: one worker decodes, then all prefill, after the others were
// parked for 100 ms. It measures from the end of the last op to the start of the next one on all
// workers.
func benchSwitch(b *testing.B, p *Pool, run func(func(*Worker)), set func([]int) (time.Duration, error)) {
	var down, up []time.Duration
	one := []int{0}
	var before, after stamps
	n := p.Size()
	for b.Loop() {
		run(before.probe)
		if _, err := set(one); err != nil {
			b.Fatal(err)
		}
		run(after.probe)
		down = append(down, gap(&before, &after, n, 1))
		run(func(w *Worker) { // decoding for 100 ms
			for began := w.waiter.pool.now(); w.waiter.pool.now()-began < 100*time.Millisecond; {
				sys.Pause(100)
			}
		})
		run(before.probe)
		if _, err := set(nil); err != nil {
			b.Fatal(err)
		}
		run(after.probe)
		up = append(up, gap(&before, &after, 1, n))
	}
	reportMedian(b, "down", down)
	reportMedian(b, "up", up)
}

func BenchmarkSwitchRun(b *testing.B) {
	p := allCPUs(b)
	benchSwitch(b, p, p.Run, p.SetActive)
}

func BenchmarkSwitchLead(b *testing.B) {
	p := allCPUs(b)
	p.Lead(func(l *Leader) { benchSwitch(b, p, l.Run, l.SetActive) })
}

// BenchmarkCollectWhileSpinning measures the pauses of the garbage collector with all workers but
// one in a barrier and that one in a loop of Go code.
func BenchmarkCollectWhileSpinning(b *testing.B) {
	p := allCPUs(b)
	for _, w := range p.workers {
		w.spin = time.Hour
		w.limit.Store(int64(w.spin))
	}
	var enough atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(func(w *Worker) {
			if w.ID() == 0 {
				for !enough.Load() {
					p.now()
				}
			}
			w.Barrier()
		})
	}()
	before := gcPauses()
	for b.Loop() {
		runtime.GC()
	}
	after := gcPauses()
	enough.Store(true)
	<-done
	var total uint64
	for i := range after.Counts {
		after.Counts[i] -= before.Counts[i]
		total += after.Counts[i]
	}
	b.ReportMetric(quantile(after, total/2)*1e6, "us-pause-median")
	b.ReportMetric(quantile(after, total*9/10)*1e6, "us-pause-p90")
	b.ReportMetric(quantile(after, total-1)*1e6, "us-pause-longest")
}

func gcPauses() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64Histogram()
}

// quantile returns the lower bound of the bucket of the rank-th smallest value.
func quantile(h *metrics.Float64Histogram, rank uint64) float64 {
	for i, n := range h.Counts {
		if rank < n {
			return h.Buckets[i]
		}
		rank -= n
	}
	return 0
}
