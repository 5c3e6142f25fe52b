package vulkan

import (
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/internal/remote"
)

// loader is the name of the Vulkan loader's library.
const loader = "libvulkan.so.1"

// maxDevices limits the number of devices that a driver may report.
const maxDevices = 16

// instance is a process with a Vulkan instance.
type instance struct {
	*remote.Device
	functions functions
	handle    uint64
	physical  []*physical
}

// version13 is the version of the API that kernels need.
const version13 = 1<<22 | 3<<12

// create loads the loader, creates the instance and reads the properties of its devices.
func (in *instance) create() error {
	library, err := in.Process.Load(loader)
	if err != nil {
		return fmt.Errorf("%w; install the Vulkan loader (libvulkan1) and a driver", err)
	}
	get, err := library.Symbol("vkGetInstanceProcAddr")
	if err != nil {
		return err
	}
	in.functions = functions{}
	return in.With(in.Main, func(f *hostcall.Frame) error {
		if err := in.createHandle(f, get); err != nil {
			return err
		}
		err := in.functions.lookUp(f, get, in.handle, "vkEnumeratePhysicalDevices", "vkGetPhysicalDeviceProperties2",
			"vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceMemoryProperties",
			"vkGetPhysicalDeviceMemoryProperties2", "vkGetPhysicalDeviceExternalBufferProperties",
			"vkEnumerateDeviceExtensionProperties", "vkGetPhysicalDeviceQueueFamilyProperties", "vkCreateDevice",
			"vkGetDeviceProcAddr")
		if err != nil {
			return err
		}
		return in.enumerate(f)
	})
}

func (in *instance) createHandle(f *hostcall.Frame, get uint64) error {
	if err := in.functions.lookUp(f, get, 0, "vkCreateInstance"); err != nil {
		return err
	}
	name := f.String("sandwich")
	app := f.Struct(0, uint64(0), name, 1, name, 1, version13)
	info := f.Struct(1, uint64(0), 0, app, 0, uint64(0), 0, uint64(0))
	out := f.Alloc(8)
	err := in.functions.call(f, "vkCreateInstance", info.Addr(), 0, out.Addr())
	if r, ok := errors.AsType[result](err); ok && r.code == incompatibleDriver {
		return device.Absent(fmt.Errorf("no Vulkan driver on this host: %w", err))
	}
	in.handle = out.U64(0)
	return err
}

func (in *instance) enumerate(f *hostcall.Frame) error {
	count, list := f.Alloc(4), f.Alloc(8*maxDevices)
	count.PutU32(0, maxDevices)
	const incomplete = 5 // there are more devices
	err := in.functions.call(f, "vkEnumeratePhysicalDevices", in.handle, count.Addr(), list.Addr())
	if r, ok := errors.AsType[result](err); err != nil && !(ok && r.code == incomplete) {
		return err
	}
	n := count.U32(0)
	if n > maxDevices {
		return in.Lose(fmt.Errorf("invalid reply: %d Vulkan devices", n))
	}
	for i := range n {
		p := &physical{handle: list.U64(int(8 * i))}
		if err := p.read(f, in.functions); err != nil {
			return err
		}
		in.physical = append(in.physical, p)
	}
	return nil
}
