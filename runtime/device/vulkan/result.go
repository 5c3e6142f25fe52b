package vulkan

import (
	"errors"
	"fmt"

	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
)

// result is the error of a Vulkan call.
type result struct {
	call string
	code int32
}

// VkResult codes.
const (
	timeout            = 2
	outOfHostMemory    = -1
	outOfDeviceMemory  = -2
	deviceLost         = -4
	invalidExternal    = -1000072003
	incompatibleDriver = -9
)

var resultNames = map[int32]string{
	timeout:            "VK_TIMEOUT",
	outOfHostMemory:    "VK_ERROR_OUT_OF_HOST_MEMORY",
	outOfDeviceMemory:  "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	-3:                 "VK_ERROR_INITIALIZATION_FAILED",
	deviceLost:         "VK_ERROR_DEVICE_LOST",
	-6:                 "VK_ERROR_LAYER_NOT_PRESENT",
	-7:                 "VK_ERROR_EXTENSION_NOT_PRESENT",
	-8:                 "VK_ERROR_FEATURE_NOT_PRESENT",
	incompatibleDriver: "VK_ERROR_INCOMPATIBLE_DRIVER",
	invalidExternal:    "VK_ERROR_INVALID_EXTERNAL_HANDLE",
}

func (r result) Error() string {
	name := resultNames[r.code]
	if name == "" {
		name = fmt.Sprintf("VkResult %d", r.code)
	}
	return r.call + ": " + name
}

// Is reports whether the result means one of the errors of package device.
func (r result) Is(target error) bool {
	return target == device.ErrMemory && (r.code == outOfHostMemory || r.code == outOfDeviceMemory)
}

// functions are the addresses of functions by name.
type functions map[string]uint64

// call makes a call that returns a VkResult; a code other than success is an error.
func (fs functions) call(f *hostcall.Frame, name string, args ...uint64) error {
	code, err := f.Call(fs[name], args...)
	if err == nil && int32(code) != 0 {
		err = result{name, int32(code)}
	}
	return err
}

// void makes a call without a result.
func (fs functions) void(f *hostcall.Frame, name string, args ...uint64) error {
	_, err := f.Call(fs[name], args...)
	return err
}

// lookUp adds functions that get returns for their names, with first as its first argument.
func (fs functions) lookUp(f *hostcall.Frame, get, first uint64, names ...string) error {
	for _, name := range names {
		at, err := f.Call(get, first, f.String(name).Addr())
		if err != nil {
			return err
		}
		if at == 0 {
			return errors.New("the Vulkan driver lacks " + name)
		}
		fs[name] = at
	}
	return nil
}
