package plans

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/microkernel"
)

// WorkerISAs says which instruction set the kernels of each worker use.
type WorkerISAs struct {
	All string                  // of those that Of does not name; "": the widest of the host
	Of  map[int]microkernel.ISA // by number of worker
}

// ParseWorkerISAs reads what --isa says: one instruction set for all (avx2), or for single workers
// (1=avx2), or both (avx512,1=avx2).
func ParseWorkerISAs(text string) (WorkerISAs, error) {
	w := WorkerISAs{}
	if text == "" {
		return w, nil
	}
	for i, part := range strings.Split(text, ",") {
		number, name, single := strings.Cut(part, "=")
		if !single {
			name = part
		}
		isa, err := microkernel.ParseISA(name)
		if err != nil {
			return w, err
		}
		if !single {
			if w.All = isa.String(); i > 0 {
				return w, fmt.Errorf("%.80q: the instruction set of all workers stands first, and once", text)
			}
			continue
		}
		worker, err := strconv.Atoi(number)
		if err != nil || worker < 0 {
			return w, fmt.Errorf("%.40q is not the number of a worker with its instruction set, such as 1=avx2", part)
		}
		if _, twice := w.Of[worker]; twice {
			return w, fmt.Errorf("%.80q names worker %d twice", text, worker)
		}
		if w.Of == nil {
			w.Of = map[int]microkernel.ISA{}
		}
		w.Of[worker] = isa
	}
	return w, nil
}

// Check refuses an instruction set that a CPU lacks, and workers that are not there.
func (w WorkerISAs) Check(have microkernel.Features, workers int) error {
	if w.All != "" {
		isa, err := microkernel.ParseISA(w.All)
		if err != nil {
			return err
		}
		if !have.Supports(isa) {
			return fmt.Errorf("%w: this host has no %s, it has %v", ErrISA, isa, have.ISAs())
		}
	}
	for worker, isa := range w.Of {
		switch {
		case !have.Supports(isa):
			return fmt.Errorf("%w: worker %d cannot run %s, this host has %v", ErrISA, worker, isa, have.ISAs())
		case worker >= workers:
			return fmt.Errorf("%w: there is no worker %d for %s: they are 0 to %d", ErrForeignHost, worker, isa,
				workers-1)
		}
	}
	return nil
}
