package kernels

import (
	"time"

	"sandwich/microkernel"
	"sandwich/runtime/pool"
)

// AttentionPeak returns the kernel that measures this peak, or that of float32 if the instruction
// set has no other.
func AttentionPeak(d microkernel.AttentionDot, isa microkernel.ISA) (*microkernel.Peak, error) {
	host := microkernel.Host()
	s := microkernel.PeakSpec{ISA: isa, Type: microkernel.AttentionPeakType(d, host)}
	if p, err := microkernel.NewPeak(s, host); err == nil {
		return p, nil
	}
	s.Type = microkernel.ComputeF32.Ceiling()
	return microkernel.NewPeak(s, host)
}

// PeakRate returns the FLOP/s of all workers on registers.
func PeakRate(l *pool.Leader, peak *microkernel.Peak, workers int) float64 {
	const flop, calls = 4e6, 8 // per worker: 20 to 200 microseconds per call
	iters := max(1, int(flop/float64(peak.Ops)))
	began := time.Now()
	l.Run(func(w *pool.Worker) {
		for range calls {
			peak.Run(iters)
		}
		w.Barrier()
	})
	return float64(workers*calls*iters*peak.Ops) / time.Since(began).Seconds()
}
