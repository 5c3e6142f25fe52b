package rates

import (
	"errors"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
)

const (
	readSize  = 256 // invocations of a workgroup
	readWords = 64  // read by each
	readGroup = 4 * readSize * readWords

	copyBytes = 16 << 20
)

// Launches is the number of launches of a submission from which StepSeconds is derived.
const Launches = 100

// Sizes of the memory that the kernel reads: each is tried until a run takes readTime.
const (
	minRead  = 1 << 20
	maxRead  = 256 << 20
	readTime = 5e-3 // seconds
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

// basics measures the rates of reading, launches and copies.
func (m *meter) basics(r *devrates.Device) (err error) {
	k, err := readKernel()
	if err != nil {
		return err
	}
	began := time.Now()
	program, err := m.device.Compile(k)
	if err != nil {
		return err
	}
	r.CompileSeconds = time.Since(began).Seconds()
	defer func() { err = errors.Join(err, program.Free()) }()
	for bytes := uint64(minRead); bytes <= maxRead; bytes *= 4 {
		took, err := m.read(program, bytes, 1)
		if errors.Is(err, device.ErrMemory) && bytes > minRead {
			break
		}
		if err != nil {
			return err
		}
		r.ReadBytesPerSecond = max(r.ReadBytesPerSecond, float64(bytes)/took)
		if took > readTime {
			break
		}
	}
	one, err := m.read(program, readGroup, 1)
	if err != nil {
		return err
	}
	many, err := m.read(program, readGroup, Launches)
	if err != nil {
		return err
	}
	r.LaunchSeconds, r.StepSeconds = one, many
	return m.copies(r)
}

// read returns the time of each of some launches of one submission, each of which reads the given
// bytes.
func (m *meter) read(program device.Program, bytes uint64, launches int) (took float64, err error) {
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
	list := make([]device.Launch, launches)
	for i := range list {
		list[i] = device.Launch{Program: program, Groups: [3]int{int(bytes / readGroup), 1, 1},
			Buffers: []device.Slice{{Buffer: from}, {Buffer: to}}}
	}
	return m.seconds(list...)
}

// copies measures copies in both directions.
func (m *meter) copies(r *devrates.Device) (err error) {
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
