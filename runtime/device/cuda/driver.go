// Package cuda drives NVIDIA devices through the CUDA driver API. The library, libcuda.so.1, runs
// in a child process (package hostcall); nothing else of CUDA is needed. Kernels are PTX text that
// the driver compiles.
package cuda

import (
	"context"
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/installed"
	"sandwich/runtime/device/internal/remote"
)

// libraries are the names of the driver's library, in the order in which they are tried.
var libraries = []string{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}

// maxDevices limits the number of devices that the driver may report.
const maxDevices = 64

func init() { device.Register("cuda", driver{}) }

type driver struct{ options remote.Options }

// Detect looks for the library and a device of NVIDIA.
func (driver) Detect() error { return installed.Host{}.CUDA(libraries...) }

// List describes the devices. Each call starts a child process and ends it.
func (dr driver) List(ctx context.Context) ([]device.Info, error) {
	l, err := dr.start(ctx)
	if err != nil {
		return nil, err
	}
	var infos []device.Info
	for i := range l.count {
		p, err := l.read(i)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		infos = append(infos, p.info())
	}
	return infos, l.Close()
}

// Open opens a device and tests its arithmetic.
func (dr driver) Open(ctx context.Context, index int) (device.Device, error) {
	l, err := dr.start(ctx)
	if err != nil {
		return nil, err
	}
	d := &openDevice{library: l}
	if err := d.open(index); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if d.exact, err = device.SelfTest(ctx, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start starts a process, loads the library and counts the devices.
func (dr driver) start(ctx context.Context) (*library, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := remote.Start(dr.options)
	if err != nil {
		return nil, err
	}
	l := &library{Device: r}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return l, nil
}

// library is a process with the loaded library.
type library struct {
	*remote.Device
	functions map[string]uint64
	graphs    graphs // Main guards it
	count     int
	version   uint32 // of the API, such as 13000
}

var functionNames = []string{"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
	"cuDeviceTotalMem_v2", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuStreamCreate",
	"cuMemGetInfo_v2", "cuGetErrorName", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuModuleUnload",
	"cuFuncGetAttribute", "cuLaunchKernel", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2",
	"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuEventCreate", "cuEventRecord",
	"cuEventSynchronize", "cuMemHostRegister_v2", "cuMemHostUnregister",
	"cuMemHostGetDevicePointer_v2", "cuDeviceGetPCIBusId"}

func (l *library) load() error {
	var file *hostcall.Library
	var errs []error
	for _, name := range libraries {
		var err error
		if file, err = l.Process.Load(name); err == nil {
			break
		}
		errs = append(errs, l.Check(err))
	}
	if file == nil {
		return fmt.Errorf("no CUDA driver on this host: %w", errs[0])
	}
	l.functions = map[string]uint64{}
	for _, name := range functionNames {
		at, err := file.Symbol(name)
		if err != nil {
			return fmt.Errorf("the CUDA driver is too old: %w", l.Check(err))
		}
		l.functions[name] = at
	}
	if err := l.loadGraphs(file); err != nil {
		return l.Check(err)
	}
	return l.With(l.Main, func(f *hostcall.Frame) error {
		f.Limit *= 4 // the driver may load its kernel modules
		out := f.Alloc(4)
		if err := l.call(f, "cuInit", 0); err != nil {
			return err
		}
		if err := l.call(f, "cuDriverGetVersion", out.Addr()); err != nil {
			return err
		}
		if l.version = out.U32(0); l.version < minVersion {
			return fmt.Errorf("the CUDA driver is too old: it supports CUDA %s; kernels are PTX 7.0, which CUDA %s "+
				"brought; install a newer NVIDIA driver", versionText(l.version), versionText(minVersion))
		}
		if err := l.call(f, "cuDeviceGetCount", out.Addr()); err != nil {
			return err
		}
		n := out.U32(0)
		if n > maxDevices {
			return l.Lose(fmt.Errorf("invalid reply: %d CUDA devices", n))
		}
		l.count = int(n)
		return nil
	})
}

// minVersion is the version of CUDA from which drivers compile the PTX of kernels.
const minVersion = 11000

// versionText formats a version of CUDA: 12040 is 12.4.
func versionText(v uint32) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// result is the error of a CUDA call.
type result struct {
	call string
	code int32
	name string
}

const codeOutOfMemory = 2

func (r result) Error() string { return fmt.Sprintf("%s: %s (error %d)", r.call, r.name, r.code) }

// Is reports whether the result means one of the errors of package device.
func (r result) Is(target error) bool { return target == device.ErrMemory && r.code == codeOutOfMemory }

// call makes a call; a code other than 0 is an error.
func (l *library) call(f *hostcall.Frame, name string, args ...uint64) error {
	code, err := f.Call(l.functions[name], args...)
	if err != nil || int32(code) == 0 {
		return err
	}
	return l.failure(f, name, int32(code))
}

// failure returns the error of a code, with the name that the driver has for it.
func (l *library) failure(f *hostcall.Frame, call string, code int32) error {
	r := result{call, code, "unknown error"}
	text := f.Alloc(8)
	if c, err := f.Call(l.functions["cuGetErrorName"], uint64(code), text.Addr()); err != nil {
		return err
	} else if at := text.U64(0); int32(c) == 0 && at != 0 {
		if r.name, err = f.ReadString(at, 100); err != nil {
			return err
		}
	}
	return r
}
