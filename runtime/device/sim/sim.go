// Package sim implements a device in this process. In Exact mode it computes every kernel with the
// interpreter of package interp; in Timed mode it waits as long as the configured device would take
// and computes nothing. Both modes have configurable memory, costs and faults.
package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/interp"
	"sandwich/runtime/device"
	"sandwich/runtime/device/internal/queue"
)

// Mode selects whether a device computes or waits.
type Mode uint8

// The modes.
const (
	Exact Mode = iota // compute, take no simulated time
	Timed             // wait, compute nothing
)

// Config describes a simulated device. The zero value computes exactly with unlimited memory.
type Config struct {
	Name        string // "": simulated device
	Mode        Mode
	MemoryBytes uint64 // of the device's own memory, without imported memory; 0 is unlimited
	// OtherBytes returns how much of MemoryBytes other processes hold; nil: nothing. Holds is
	// called with the bytes that this device holds when they change; it may be nil.
	OtherBytes func() uint64
	Holds      func(bytes uint64)
	Unified    bool
	Sharing    device.Sharing // how Shared buffers are made
	// RefuseShared returns why the driver refuses a Shared buffer, or nil.
	RefuseShared func(bytes uint64) error

	// Costs in Timed mode. A rate of 0 is infinite. The steps of a submission take their sum after
	// the submission was made and the one before it has ended.
	Compile        time.Duration // of a kernel
	Launch         time.Duration // of a submission
	CopyBytesPerS  float64       // of Write, Read and Copy
	KernelDuration func(k *devgen.Kernel, groups [3]int, push []uint32) time.Duration

	// KernelBytes returns the memory that a kernel reads. On the wall clock in Timed mode the
	// device reads as much memory of this process during a submission, at an even rate, and takes
	// longer if it gets less. That keeps a core busy. nil: it reads none.
	KernelBytes func(k *devgen.Kernel, groups [3]int, push []uint32) float64

	// Sleep waits in Timed mode; nil is the wall clock. It is called once per submission and per
	// other call, and returns early with an error when the channel is closed.
	Sleep func(d time.Duration, lost <-chan struct{}) error

	// Compiling, if not nil, is called when the compilation of a kernel begins, in both modes.
	Compiling func(k *devgen.Kernel)
	// Refuse returns why a kernel cannot be compiled, or nil.
	Refuse func(k *devgen.Kernel) error
	// Fault returns what goes wrong in a submission.
	Fault func(t device.Ticket) Fault
	// After changes what a kernel wrote, in Exact mode, as inexact arithmetic would. buffers are
	// those of its bindings.
	After func(k *devgen.Kernel, buffers [][]byte)
	// Inexact has the classes that the device reports as inexact.
	Inexact device.Exactness
	// StallFor is the time after which a submission that stalls runs; 0: it never runs.
	StallFor time.Duration
}

// Fault is what goes wrong in a submission.
type Fault uint8

// The faults.
const (
	None  Fault = iota
	Crash       // the device is lost before the submission runs
	Stall       // the submission waits for StallFor or until the device is closed
	NaN         // the last launch writes NaN; buffers that are not Shared are filled with it
	Lie         // the submission is reported as complete but did not run
)

// Device is a simulated device.
type Device struct {
	config Config
	queue  *queue.Queue

	mu      sync.Mutex
	used    uint64
	work    map[device.Ticket]submission // not complete
	ready   time.Time                    // end of the last submission on the wall clock
	traffic traffic
}

// submission is recorded work and when it was submitted.
type submission struct {
	steps []device.Step
	at    time.Time
}

// New returns a simulated device.
func New(c Config) *Device {
	d := &Device{config: c, work: map[device.Ticket]submission{}}
	d.queue = queue.New(d.run)
	return d
}

func sleep(t time.Duration, lost <-chan struct{}) error {
	if t <= 0 {
		return nil
	}
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-lost:
		return device.ErrLost
	}
}

// Info describes the device. Both modes report every class as exact unless it is configured.
func (d *Device) Info() device.Info {
	i := device.Info{Name: "simulated device", API: "sim", Driver: "1", MemoryBytes: d.config.MemoryBytes,
		Unified: d.config.Unified, HostVisible: true, Sharing: d.config.Sharing, MatrixUnit: true,
		Simulated: d.config.Mode == Timed, Exact: device.AllExact &^ d.config.Inexact}
	if d.config.Name != "" {
		i.Name = d.config.Name
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i.MemoryBytes > 0 {
		i.FreeBytes = d.free()
	}
	return i
}

// Write copies data into a buffer.
func (d *Device) Write(b device.Buffer, offset uint64, data []byte) error {
	return d.transfer(b, offset, uint64(len(data)), func(at []byte) { copy(at, data) })
}

// Read copies data from a buffer.
func (d *Device) Read(b device.Buffer, offset uint64, data []byte) error {
	return d.transfer(b, offset, uint64(len(data)), func(at []byte) { copy(data, at) })
}

func (d *Device) transfer(b device.Buffer, offset, bytes uint64, move func(at []byte)) error {
	if err := device.CheckRange(b, offset, bytes); err != nil {
		return err
	}
	if err := d.queue.Drain(context.Background()); err != nil {
		return err
	}
	if err := d.queue.Err(); err != nil {
		return err
	}
	if err := d.wait(d.copyTime(bytes)); err != nil {
		return err
	}
	move(b.(*buffer).data[offset : offset+bytes])
	return nil
}

// wait lets simulated time pass.
func (d *Device) wait(t time.Duration) error {
	if d.config.Mode == Exact {
		return nil
	}
	if d.config.Sleep == nil {
		return sleep(t, d.queue.Lost())
	}
	return d.config.Sleep(t, d.queue.Lost())
}

// busy lets the time of a submission pass. On the wall clock, a submission that is late because the
// one before it ended late does not delay those after it.
func (d *Device) busy(s submission, t time.Duration) error {
	if d.config.Mode == Timed && d.config.Sleep == nil {
		if d.ready.Before(s.at) {
			d.ready = s.at
		}
		d.ready = d.ready.Add(t)
		if bytes := d.bytesOf(s.steps); bytes > 0 {
			if err := d.traffic.read(bytes, d.ready, d.queue.Lost()); err != nil {
				return err
			}
			if now := time.Now(); d.ready.Before(now) {
				d.ready = now
			}
		}
		t = time.Until(d.ready)
	}
	return d.wait(t)
}

func (d *Device) copyTime(bytes uint64) time.Duration {
	if d.config.CopyBytesPerS <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) / d.config.CopyBytesPerS * 1e9)
}

type program struct{ kernel *devgen.Kernel }

func (p *program) Kernel() *devgen.Kernel { return p.kernel }
func (p *program) Free() error            { return nil }

// Compile validates the kernel.
func (d *Device) Compile(k *devgen.Kernel) (device.Program, error) {
	if d.config.Compiling != nil {
		d.config.Compiling(k)
	}
	if err := d.queue.Err(); err != nil {
		return nil, err
	}
	err := k.Validate()
	if err == nil && d.config.Refuse != nil {
		err = d.config.Refuse(k)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", device.ErrRefused, err)
	}
	if err := d.wait(d.config.Compile); err != nil {
		return nil, err
	}
	return &program{k}, nil
}

type commands struct{ steps []device.Step }

func (c *commands) Free() error { return nil }

// Record checks the steps.
func (d *Device) Record(steps ...device.Step) (device.Commands, error) {
	err := device.CheckSteps(steps, func(device.Launch) error { return nil }, func(device.Copy) error { return nil })
	return &commands{slices.Clone(steps)}, err
}

// Submit queues the steps.
func (d *Device) Submit(c device.Commands) (device.Ticket, error) {
	return d.queue.Submit(func(t device.Ticket) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.work[t] = submission{c.(*commands).steps, time.Now()}
		return nil
	})
}

// Reached reports whether a submission is complete.
func (d *Device) Reached(t device.Ticket) bool { return d.queue.Reached(t) }

// Wait waits for a submission.
func (d *Device) Wait(ctx context.Context, t device.Ticket) error { return d.queue.Wait(ctx, t) }

// run executes a submission; the queue calls it in order.
func (d *Device) run(t device.Ticket) error {
	d.mu.Lock()
	work := d.work[t]
	delete(d.work, t)
	d.mu.Unlock()
	fault := None
	if d.config.Fault != nil {
		fault = d.config.Fault(t)
	}
	switch fault {
	case Crash:
		return fmt.Errorf("%w: simulated crash", device.ErrLost)
	case Stall:
		if d.config.StallFor == 0 {
			<-d.queue.Lost()
			return device.ErrLost
		}
		if err := sleep(d.config.StallFor, d.queue.Lost()); err != nil {
			return err
		}
	case Lie:
		return nil
	}
	took := d.config.Launch
	for _, s := range work.steps {
		t, err := d.step(s)
		if err != nil {
			return fmt.Errorf("%w: %w", device.ErrLost, err)
		}
		took += t
	}
	if err := d.busy(work, took); err != nil {
		return err
	}
	if fault == NaN {
		return poison(work.steps)
	}
	return nil
}

// step runs a step and returns the time that it takes.
func (d *Device) step(s device.Step) (took time.Duration, err error) {
	switch s := s.(type) {
	case device.Launch:
		k := s.Program.Kernel()
		if d.config.Mode == Timed {
			if d.config.KernelDuration == nil {
				return 0, nil
			}
			return d.config.KernelDuration(k, s.Groups, s.Push), nil
		}
		var buffers [][]byte
		for _, b := range s.Buffers {
			buffers = append(buffers, b.Buffer.(*buffer).data[b.Offset:])
		}
		if err := interp.Run(k, s.Groups, buffers, s.Push); err != nil {
			return 0, err
		}
		if d.config.After != nil {
			d.config.After(k, buffers)
		}
		return 0, nil
	case device.Copy:
		run(s)
		took = d.copyTime(s.Bytes)
	}
	return took, nil
}

// run runs a copy.
func run(c device.Copy) { copy(memory(c.To)[:c.Bytes], memory(c.From)[:c.Bytes]) }

// Lost returns a channel that is closed when the device is lost or closed.
func (d *Device) Lost() <-chan struct{} { return d.queue.Lost() }

// Err returns why the device is lost, or nil.
func (d *Device) Err() error { return d.queue.Err() }

// Close ends the device.
func (d *Device) Close() error {
	d.queue.Lose(fmt.Errorf("%w: closed", device.ErrLost))
	d.queue.Join()
	return nil
}
