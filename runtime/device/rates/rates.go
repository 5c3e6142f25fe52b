package rates

import (
	"context"
	"errors"
	"time"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
)

// Product identifies the matrix products of one weight type on one path.
type Product struct {
	Type qtype.Type
	Path microkernel.Compute
}

// Class returns the name of the product's class.
func (p Product) Class() string { return "product " + p.Type.String() + " " + p.Path.String() }

// Classes of kernels other than products.
const (
	Attention = "attention"
	Rows      = "rows" // norms, rotations, quantizations and sums of rows
)

// Usual lists the products of common models.
func Usual() []Product {
	return []Product{{qtype.Q8_0, microkernel.ComputeInt8}, {qtype.Q4_K, microkernel.ComputeInt8},
		{qtype.Q4_K, microkernel.ComputeInt8K}, {qtype.BF16, microkernel.ComputeF32}}
}

// Describe returns the entry of a device without rates. build identifies the kernels of this
// program.
func Describe(id, build string, i device.Info) devrates.Device {
	return devrates.Device{ID: id, Name: i.Name, API: i.API, Driver: i.Driver, MemoryBytes: int64(i.MemoryBytes),
		Unified: i.Unified, Build: build}
}

// Add measures the classes of the products, of attention and of rows that the entry lacks, and the
// rates of copies and launches if it lacks them. It reports whether it measured anything. A product
// that the device refuses is omitted. Nothing else should use the device.
func Add(ctx context.Context, d device.Device, to *devrates.Device, products ...Product) (measured bool, err error) {
	m := &meter{ctx: ctx, device: d, matrixUnit: d.Info().MatrixUnit}
	if to.LaunchSeconds == 0 {
		measured = true
		if err := m.basics(to); err != nil {
			return true, err
		}
	}
	work := map[string]func() (devrates.Class, error){Attention: m.attention, Rows: m.rows}
	names := []string{Attention, Rows}
	for _, p := range products {
		if _, ok := work[p.Class()]; !ok {
			names = append(names, p.Class())
			work[p.Class()] = func() (devrates.Class, error) { return m.product(p) }
		}
	}
	for _, name := range names {
		if to.Class(name) != nil {
			continue
		}
		measured = true
		c, err := work[name]()
		if errors.Is(err, device.ErrRefused) || errors.Is(err, device.ErrMemory) {
			continue
		}
		if err != nil {
			return true, err
		}
		c.Name = name
		to.Classes = append(to.Classes, c)
	}
	return measured, nil
}

// meter measures a device.
type meter struct {
	ctx        context.Context
	device     device.Device
	matrixUnit bool
}

// seconds returns the time of each of several launches of one submission, the fastest of a few
// submissions.
func (m *meter) seconds(launches ...device.Launch) (float64, error) {
	steps := make([]device.Step, len(launches))
	for i, l := range launches {
		steps[i] = l
	}
	commands, err := m.device.Record(steps...)
	if err != nil {
		return 0, err
	}
	took, err := fastest(func() error { return device.SubmitAndWait(m.ctx, m.device, commands) })
	return took.Seconds() / float64(len(launches)), errors.Join(err, commands.Free())
}

const repetitions = 3 // of which the fastest counts, after one that warms up

// enough ends the repetitions on slow devices. The first run never counts, since some drivers
// compile a kernel when it is first run.
const enough = 100 * time.Millisecond

// fastest returns the shortest of a few durations of f, at least a nanosecond.
func fastest(f func() error) (time.Duration, error) { return fastestBy(time.Now, f) }

// fastestBy is fastest with a clock.
func fastestBy(now func() time.Time, f func() error) (time.Duration, error) {
	var best, sum time.Duration
	for i := range repetitions + 1 {
		began := now()
		if err := f(); err != nil {
			return 0, err
		}
		if i == 0 {
			continue
		}
		took := max(1, now().Sub(began))
		if best == 0 || took < best {
			best = took
		}
		if sum += took; sum > enough {
			break
		}
	}
	return best, nil
}
