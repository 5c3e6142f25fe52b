package report

import (
	"context"
	"errors"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
)

// Rates are measured rates of a device.
type Rates struct {
	ReadBytesPerSecond     float64 `json:"read_bytes_per_second"`      // of device memory, by a kernel
	WriteBytesPerSecond    float64 `json:"write_bytes_per_second"`     // copies to the device
	CopyBackBytesPerSecond float64 `json:"copy_back_bytes_per_second"` // copies from the device
	LaunchSeconds          float64 `json:"launch_seconds"`             // of a submission of one launch, with its wait
	StepSeconds            float64 `json:"step_seconds"`               // per launch in a submission of many
	CompileSeconds         float64 `json:"compile_seconds"`            // of the kernel that reads
}

const (
	readSize  = 256 // invocations of a workgroup
	readWords = 64  // read by each
	readGroup = 4 * readSize * readWords

	copyBytes             = 16 << 20
	launchesPerSubmission = 100
	repetitions           = 3 // the fastest counts
)

// Sizes of the memory that the kernel reads: each is tried until a run takes readTime.
const (
	leastRead = 1 << 20
	mostRead  = 256 << 20
	readTime  = 5 * time.Millisecond
)

// readKernel returns a kernel whose invocations combine readWords words each.
func readKernel() (*devgen.Kernel, error) {
	b := devgen.NewBuilder("measure_read", readSize)
	from, to := b.Binding("from", devgen.Read), b.Binding("to", devgen.Write)
	group, local := b.Builtin(devgen.GroupX), b.Builtin(devgen.LocalIndex)
	sum := b.Var(b.U(0))
	first := b.MulAdd(group, b.U(readSize*readWords), local)
	b.Range(b.U(readWords), func(i devgen.Value) {
		b.Set(sum, b.Xor(b.Get(sum), b.Load(from, b.MulAdd(i, b.U(readSize), first))))
	})
	b.Store(to, b.MulAdd(group, b.U(readSize), local), b.Get(sum))
	return b.Build()
}

// measure measures the rates of a device.
func measure(ctx context.Context, d device.Device) (r Rates, err error) {
	k, err := readKernel()
	if err != nil {
		return r, err
	}
	began := time.Now()
	program, err := d.Compile(k)
	if err != nil {
		return r, err
	}
	r.CompileSeconds = time.Since(began).Seconds()
	defer func() { err = errors.Join(err, program.Free()) }()
	m := meter{ctx, d, program}
	for bytes := uint64(leastRead); bytes <= mostRead; bytes *= 4 {
		took, err := m.read(bytes, 1)
		if errors.Is(err, device.ErrMemory) && bytes > leastRead {
			break
		}
		if err != nil {
			return r, err
		}
		r.ReadBytesPerSecond = max(r.ReadBytesPerSecond, float64(bytes)/took.Seconds())
		if took > readTime {
			break
		}
	}
	one, err := m.read(readGroup, 1)
	if err != nil {
		return r, err
	}
	many, err := m.read(readGroup, launchesPerSubmission)
	if err != nil {
		return r, err
	}
	r.LaunchSeconds, r.StepSeconds = one.Seconds(), many.Seconds()/launchesPerSubmission
	return r, m.copies(&r)
}

// meter measures with one program.
type meter struct {
	ctx     context.Context
	device  device.Device
	program device.Program
}

// read returns the shortest time of submissions with launches that each read the given bytes.
func (m meter) read(bytes uint64, launches int) (best time.Duration, err error) {
	from, err := m.device.Alloc(bytes, device.DeviceLocal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Free()) }()
	to, err := m.device.Alloc(bytes/readWords, device.DeviceLocal)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Free()) }()
	var steps []device.Step
	for range launches {
		steps = append(steps, device.Launch{Program: m.program, Groups: [3]int{int(bytes / readGroup), 1, 1},
			Buffers: []device.Slice{{Buffer: from}, {Buffer: to}}})
	}
	commands, err := m.device.Record(steps...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, commands.Free()) }()
	return fastest(func() error {
		ticket, err := m.device.Submit(commands)
		if err != nil {
			return err
		}
		return m.device.Wait(m.ctx, ticket)
	})
}

// copies measures copies in both directions.
func (m meter) copies(r *Rates) (err error) {
	data := make([]byte, copyBytes)
	b, err := m.device.Alloc(copyBytes, device.DeviceLocal)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Free()) }()
	there, err := fastest(func() error { return m.device.Write(b, 0, data) })
	if err != nil {
		return err
	}
	back, err := fastest(func() error { return m.device.Read(b, 0, data) })
	if err != nil {
		return err
	}
	r.WriteBytesPerSecond, r.CopyBackBytesPerSecond = copyBytes/there.Seconds(), copyBytes/back.Seconds()
	return nil
}

// fastest returns the shortest of several durations of f, at least a nanosecond.
func fastest(f func() error) (time.Duration, error) {
	best := time.Duration(1<<63 - 1)
	for range repetitions {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		best = max(1, min(best, time.Since(began)))
	}
	return best, nil
}
