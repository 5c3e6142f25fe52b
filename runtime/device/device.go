package device

import (
	"context"
	"errors"

	"sandwich/microkernel/devgen"
)

// Errors that drivers wrap.
var (
	// ErrLost means that the device can no longer be used; close it.
	ErrLost = errors.New("the device is lost")
	// ErrMemory means that the device has too little free memory.
	ErrMemory = errors.New("the device has too little memory")
	// ErrAbsent means that the host has no device of a driver.
	ErrAbsent = errors.New("no device")
	// ErrRefused means that the device cannot run a kernel.
	ErrRefused = errors.New("the device refuses the kernel")
)

// Info describes a device.
type Info struct {
	Name        string // as the driver reports it
	API         string // the interface through which it is driven, for display
	Driver      string // version of the driver
	Address     string // on the PCI bus, such as 0000:01:00.0; "" if the driver does not report it
	MemoryBytes uint64
	FreeBytes   uint64 // 0 if the driver does not report it
	Unified     bool   // the device and the cores use the same memory
	// HostVisible means that the device can use memory of this process; see [Usage].
	HostVisible bool
	// Sharing describes how Shared buffers are made. It is NotShared if the device has none.
	Sharing Sharing
	// MatrixUnit means that the device runs kernels that need a matrix unit.
	MatrixUnit bool
	// Software means that the driver computes on the cores.
	Software bool
	// Lacks names the features that the device needs and lacks, so that it cannot be opened; ""
	// if it has all.
	Lacks string
	// Simulated means that the device takes time and computes nothing. Its kernels are not
	// verified.
	Simulated bool
	// Exact has the classes of arithmetic that are exact by the self-test, Repaired included.
	Exact Exactness
	// Repaired has the classes that are exact by sequences of other operations.
	Repaired Exactness
}

// Usage says who accesses a buffer.
type Usage uint8

const (
	// DeviceLocal buffers are accessed by kernels and by [Device.Write] and [Device.Read].
	DeviceLocal Usage = iota
	// HostVisible buffers are also mapped into this process; see [Buffer.Host].
	HostVisible
	// Shared buffers are HostVisible buffers on which the cores compute too: their memory is cached
	// by the cores, and this process keeps it until Free even if the device is lost or closed.
	Shared
)

// HostUsage returns the usage of buffers on a device that this process reads or writes.
func HostUsage(d Device) Usage {
	if d.Info().HostVisible {
		return HostVisible
	}
	return DeviceLocal
}

// Sharing describes how the cores and a device use the same memory in [Shared] buffers.
type Sharing uint8

// The ways of sharing.
const (
	NotShared Sharing = iota
	Imported          // the device uses memory of this process
	Exported          // this process maps memory of the device
)

// String describes the way.
func (s Sharing) String() string {
	return [...]string{"no shared memory", "imported memory of the host", "exported memory of the device"}[s]
}

// Buffer is memory of a device.
type Buffer interface {
	// Bytes returns the size.
	Bytes() uint64
	// Host returns the memory of a HostVisible or Shared buffer, else nil. The device sees what was
	// written before a submission, and the caller sees what the device wrote once the ticket is
	// reached. It must not be used after Free, nor after Close unless the buffer is Shared.
	Host() []byte
	// Free releases the memory. No pending submission may use it.
	Free() error
}

// Program is a compiled kernel.
type Program interface {
	Kernel() *devgen.Kernel
	// Free releases the program. No pending submission may use it.
	Free() error
}

// Commands are recorded work. Buffers and programs in them must not be freed while it is used.
type Commands interface {
	// Free releases the commands, which must not be pending.
	Free() error
}

// Ticket identifies a submission. Later submissions of a device have larger tickets.
type Ticket uint64

// Device is an open device. Its methods may be called concurrently.
type Device interface {
	Info() Info
	// Alloc allocates zeroed memory. It returns an error that wraps [ErrMemory] if there is too
	// little.
	Alloc(bytes uint64, usage Usage) (Buffer, error)
	// Write and Read copy between memory of this process and a buffer. They run after the
	// submissions made before and return when the copy is complete.
	Write(b Buffer, offset uint64, data []byte) error
	Read(b Buffer, offset uint64, data []byte) error
	// Compile compiles a kernel. It returns an error that wraps [ErrRefused] if the device cannot
	// run it.
	Compile(k *devgen.Kernel) (Program, error)
	// Record prepares steps that run in order. Each step sees the writes of the steps before it.
	Record(steps ...Step) (Commands, error)
	// Submit starts recorded work after all earlier submissions. It does not wait.
	Submit(c Commands) (Ticket, error)
	// Reached reports whether a submission is complete.
	Reached(t Ticket) bool
	// Wait blocks until the submission is complete, the context ends or the device is lost.
	Wait(ctx context.Context, t Ticket) error
	// Lost returns a channel that is closed when the device is lost or closed.
	Lost() <-chan struct{}
	// Err returns why the device is lost, or nil.
	Err() error
	// Close releases the device and all that belongs to it.
	Close() error
}
