// Package nvml reads the energy counters of NVIDIA devices through NVML. The library,
// libnvidia-ml.so.1, runs in a child process (package hostcall).
package nvml

import (
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/device/hostcall"
)

// libraries are the names of NVML, in the order in which they are tried.
var libraries = []string{"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"}

// callLimit is the time after which a call counts as hung; initLimit is that of the first call,
// which may load kernel modules.
const (
	callLimit = 2 * time.Second
	initLimit = time.Minute
)

// Functions of the library.
const (
	functionInit   = "nvmlInit_v2"
	functionHandle = "nvmlDeviceGetHandleByPciBusId_v2"
	functionEnergy = "nvmlDeviceGetTotalEnergyConsumption"
	functionError  = "nvmlErrorString"
)

// Counter is the energy counter of a device. Its methods may be called concurrently.
type Counter struct {
	process   *hostcall.Process
	functions map[string]uint64
	device    uint64
}

// Open starts a child process that reads the counter of the device with an address on the PCI bus,
// such as 0000:01:00.0.
func Open(address string) (*Counter, error) { return open(libraries, address) }

func open(libraries []string, address string) (*Counter, error) {
	p, err := hostcall.Start(hostcall.Options{CallLimit: callLimit})
	if err != nil {
		return nil, err
	}
	c := &Counter{process: p, functions: map[string]uint64{}}
	err = c.load(libraries)
	if err == nil {
		err = c.find(address)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return c, nil
}

// load loads the library.
func (c *Counter) load(libraries []string) error {
	var file *hostcall.Library
	var first error
	for _, name := range libraries {
		var err error
		if file, err = c.process.Load(name); err == nil {
			break
		}
		if first == nil {
			first = err
		}
	}
	if file == nil {
		return fmt.Errorf("no NVML on this host: %w", first)
	}
	for _, name := range []string{functionInit, functionHandle, functionEnergy, functionError} {
		at, err := file.Symbol(name)
		if err != nil {
			return fmt.Errorf("NVML is too old: %w", err)
		}
		c.functions[name] = at
	}
	return nil
}

// find initializes the library and looks the device up.
func (c *Counter) find(address string) error {
	return c.process.Main().With(func(f *hostcall.Frame) error {
		f.Limit = initLimit
		if err := c.call(f, functionInit); err != nil {
			return err
		}
		out := f.Alloc(8)
		if err := c.call(f, functionHandle, f.String(address).Addr(), out.Addr()); err != nil {
			return err
		}
		c.device = out.U64(0)
		return nil
	})
}

// Joules returns the energy that the device used since its driver was loaded.
func (c *Counter) Joules() (joules float64, err error) {
	err = c.process.Main().With(func(f *hostcall.Frame) error {
		out := f.Alloc(8) // in millijoules
		if err := c.call(f, functionEnergy, c.device, out.Addr()); err != nil {
			return err
		}
		joules = float64(out.U64(0)) / 1e3
		return nil
	})
	return joules, err
}

// Close ends the child process.
func (c *Counter) Close() error { return c.process.Close() }

// call makes a call; a code other than 0 is an error with the text that the library has for it.
func (c *Counter) call(f *hostcall.Frame, name string, args ...uint64) error {
	code, err := f.Call(c.functions[name], args...)
	if err != nil || int32(code) == 0 {
		return err
	}
	text := "unknown error"
	at, err := f.Call(c.functions[functionError], code)
	if err == nil && at != 0 {
		text, err = f.ReadString(at, 100)
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s (error %d)", name, text, int32(code))
}
