// Package calibrate measures the machine that the program runs on and stores the figures in a
// profile.
//
// It uses kernels from the same generators as serving, on workers that are pinned to allowed PUs.
// Each figure has a median, a range and a number of samples. Samples of distinct figures are
// interleaved, so that a disturbance affects all of them.
package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
)

// Measure replaces the measured ceilings of a profile of this machine: the multiply-add peak of
// each instruction set and data type, and read bandwidth of caches and memory, for 1 to n PUs.
// Quoted and assumed ceilings stay. If ctx is canceled, Measure stops between two samples, keeps
// the figures so far and returns ctx's error. It fails if a worker cannot be pinned to its PU.
func Measure(ctx context.Context, p *profiles.Profile, o Options) error {
	began := time.Now()
	pus := p.RankedPUs()
	if len(pus) == 0 {
		return errNoPU
	}
	workers, err := pool.New(pus, pool.Options{Pin: true})
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	defer workers.Close()
	b := newBench(workers, p)
	defer b.free()
	figures, err := b.figures()
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	if err = b.sample(ctx, figures, o, began); err == nil {
		var ports []*figure
		ports, err = b.samplePorts(ctx, microkernel.Host().Best(), min(portSamples, cmp.Or(o.Samples, portSamples)))
		figures = append(figures, ports...)
	}
	p.Ceilings = replaced(p.Ceilings, figures)
	p.Probe = newProbe("quick", began, err)
	p.Notes = slices.DeleteFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, notePrefix) })
	for _, n := range slices.Concat(b.notes, b.sharedNote(), busyNotes(p.Ceilings)) {
		p.Notes = append(p.Notes, notePrefix+n)
	}
	if note := workers.Note(); note != "" {
		p.Notes = append(p.Notes, notePrefix+note)
	}
	return err
}

// notePrefix marks the notes of a measurement. The next measurement replaces them.
const notePrefix = "measurement: "

// busyLimit is the noise of a figure above which the profile notes that another process was
// running.
const busyLimit = 0.1

// busyNotes returns a note on the noisiest figure if its noise exceeds busyLimit.
func busyNotes(ceilings []profiles.Ceiling) []string {
	var worst profiles.Ceiling
	for _, c := range ceilings {
		if c.Measured() && c.Noise > worst.Noise {
			worst = c
		}
	}
	if worst.Noise < busyLimit {
		return nil
	}
	return []string{fmt.Sprintf("another process was running: %s with %d PUs varied by %.0f %% around its "+
		"median; measure again on a quiet machine", worst.Name(), worst.PUs, worst.Noise*100)}
}

// figures returns all figures of the quick probe.
func (b *bench) figures() ([]*figure, error) {
	out, err := b.computeFigures()
	if err != nil {
		return nil, err
	}
	bw, err := b.bandwidthFigures()
	return append(out, bw...), err
}

// computeFigures returns the multiply-add peaks. Plain Go is measured only if there is no generated
// code, for example if the system forbids executable memory.
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

// peakFigures returns figures of one peak for each number of PUs, and whether it runs generated
// code.
func (b *bench) peakFigures(s microkernel.PeakSpec, window time.Duration) (out []*figure, generated bool, err error) {
	// these types are compared with each other on one PU; if a kernel fails its self-test, the unit
	// is not used
	alone := slices.Contains(microkernel.KernelTypes(), s.Type)
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

// otherTypes returns the first worker of each core type other than that of worker 0.
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

// bandwidthFigures returns figures of reads from each worker's region of one buffer, sized for a
// level of the hierarchy.
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
