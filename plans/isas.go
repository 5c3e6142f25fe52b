package plans

import (
	"fmt"
	"strconv"
	"strings"

	"sandwich/microkernel"
)

// WorkerISAs selects the instruction set of each worker's kernels.
type WorkerISAs struct {
	All string                  // for workers that are not in Of; "": the widest of the host
	Of  map[int]microkernel.ISA // by worker index
}

// ParseWorkerISAs parses the value of --isa: one instruction set for all workers (avx2), for single
// workers (1=avx2), or both (avx512,1=avx2).
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
				return w, fmt.Errorf("%.80q: put the instruction set of all workers first, and only once", text)
			}
			continue
		}
		worker, err := strconv.Atoi(number)
		if err != nil || worker < 0 {
			return w, fmt.Errorf("%.40q is not a worker index with an instruction set, such as 1=avx2", part)
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

// Check fails with ErrISA if the CPU lacks a selected instruction set, and with ErrForeignHost if a
// worker index is not below workers.
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
			return fmt.Errorf("%w: there is no worker %d for %s; the workers are 0 to %d", ErrForeignHost, worker, isa,
				workers-1)
		}
	}
	return nil
}
