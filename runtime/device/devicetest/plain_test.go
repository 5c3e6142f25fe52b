package devicetest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
	"sandwich/runtime/device"
	"sandwich/runtime/device/devicetest"
	"sandwich/runtime/device/internal/queue"
)

// This file adds a device by the steps of docs/contributing/add-device.md: a driver (1), a device
// that interprets kernels in this process (2), and its registration (3).

func init() { device.Register("plain", plainDriver{}) }

type plainDriver struct{}

// List describes the one device.
func (plainDriver) List(context.Context) ([]device.Info, error) {
	return []device.Info{{Name: "plain", API: "Go", MemoryBytes: plainMemory}}, nil
}

// Open opens the device and finds its exact classes of arithmetic.
func (plainDriver) Open(ctx context.Context, index int) (device.Device, error) {
	if index > 0 {
		return nil, fmt.Errorf("there is no plain device %d", index)
	}
	d := newPlain()
	exact, err := device.SelfTest(ctx, d)
	if err != nil {
		return nil, err
	}
	d.info.Exact = exact
	return d, nil
}

// plainMemory is the most bytes of a buffer.
const plainMemory = 1 << 30

// plain is the device. Its queue runs submissions in order.
type plain struct {
	*queue.Queue
	info device.Info
	work sync.Map // of []device.Step by ticket
}

func newPlain() *plain {
	d := &plain{info: device.Info{Name: "plain", API: "Go", MemoryBytes: plainMemory}}
	d.Queue = queue.New(d.run)
	return d
}

// Info describes the device.
func (d *plain) Info() device.Info { return d.info }

// Alloc returns memory that only the device sees.
func (d *plain) Alloc(bytes uint64, usage device.Usage) (device.Buffer, error) {
	switch {
	case d.Err() != nil:
		return nil, d.Err()
	case bytes == 0 || bytes > plainMemory:
		return nil, fmt.Errorf("%w: %d bytes", device.ErrMemory, bytes)
	case usage != device.DeviceLocal:
		return nil, fmt.Errorf("the plain device has no memory that the host sees")
	}
	return plainBuffer(make([]byte, bytes)), nil
}

type plainBuffer []byte

func (b plainBuffer) Bytes() uint64 { return uint64(len(b)) }
func (b plainBuffer) Host() []byte  { return nil }
func (b plainBuffer) Free() error   { return nil }

// Write copies to a buffer.
func (d *plain) Write(b device.Buffer, offset uint64, data []byte) error {
	at, err := d.slice(b, offset, data)
	copy(at, data)
	return err
}

// Read copies from a buffer.
func (d *plain) Read(b device.Buffer, offset uint64, data []byte) error {
	at, err := d.slice(b, offset, data)
	copy(data, at)
	return err
}

// slice returns the part of a buffer that data covers, after earlier submissions are complete.
func (d *plain) slice(b device.Buffer, offset uint64, data []byte) ([]byte, error) {
	if err := device.CheckRange(b, offset, uint64(len(data))); err != nil {
		return nil, err
	}
	if err := d.Drain(context.Background()); err != nil {
		return nil, err
	}
	return b.(plainBuffer)[offset:][:len(data)], d.Err()
}

type plainProgram struct{ kernel *devgen.Kernel }

func (p plainProgram) Kernel() *devgen.Kernel { return p.kernel }
func (p plainProgram) Free() error            { return nil }

// Compile checks the kernel, which is interpreted.
func (d *plain) Compile(k *devgen.Kernel) (device.Program, error) {
	if d.Err() != nil {
		return nil, d.Err()
	}
	if err := k.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	return plainProgram{k}, nil
}

type plainCommands []device.Step

func (plainCommands) Free() error { return nil }

// Record checks the steps.
func (d *plain) Record(steps ...device.Step) (device.Commands, error) {
	err := device.CheckSteps(steps, func(device.Launch) error { return nil }, func(device.Copy) error { return nil })
	return plainCommands(slices.Clone(steps)), err
}

// Submit queues the steps.
func (d *plain) Submit(c device.Commands) (device.Ticket, error) {
	return d.Queue.Submit(func(t device.Ticket) error {
		d.work.Store(t, c)
		return nil
	})
}

// run runs the steps of a submission.
func (d *plain) run(t device.Ticket) error {
	c, _ := d.work.LoadAndDelete(t)
	for _, s := range c.(plainCommands) {
		switch s := s.(type) {
		case device.Launch:
			var buffers [][]byte
			for _, b := range s.Buffers {
				buffers = append(buffers, b.Buffer.(plainBuffer)[b.Offset:])
			}
			if err := interp.Run(s.Program.Kernel(), s.Groups, buffers, s.Push); err != nil {
				return fmt.Errorf("%w: %w", device.ErrLost, err)
			}
		case device.Copy:
			copy(s.To.Buffer.(plainBuffer)[s.To.Offset:], s.From.Buffer.(plainBuffer)[s.From.Offset:][:s.Bytes])
		}
	}
	return nil
}

// Close ends the device.
func (d *plain) Close() error {
	d.Lose(fmt.Errorf("%w: closed", device.ErrLost))
	d.Join()
	return nil
}

// TestAddDevice checks that the device is listed and opened as exact, and fulfils the contract.
func TestAddDevice(t *testing.T) {
	listed := slices.ContainsFunc(device.List(t.Context()), func(f device.Found) bool {
		return f.ID == "plain:0" && f.Err == nil
	})
	d, err := device.Open(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	if exact := d.Info().Exact; !listed || exact != device.AllExact {
		t.Errorf("listed: %v; exact: %v", listed, exact)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := device.Open(t.Context(), "plain:1"); err == nil {
		t.Error("a device that does not exist was opened")
	}
	devicetest.Run(t, func(*testing.T) device.Device { return newPlain() })
}
