package live

import (
	"errors"
	"testing"
	"testing/fstest"

	"sandwich/runtime/device"
)

// TestAccelerator checks which devices have a counter of NVML, and the reasons of those without a
// counter.
func TestAccelerator(t *testing.T) {
	root := fstest.MapFS{"sys/bus/pci/devices/0000:01:00.0/vendor": {Data: []byte("0x10de\n")},
		"sys/bus/pci/devices/0000:02:00.0/vendor": {Data: []byte("0x1002\n")}}
	for address, want := range map[string]bool{"0000:01:00.0": true, "0000:02:00.0": false, "0000:03:00.0": false} {
		if got := isNVIDIA(root, address); got != want {
			t.Errorf("%s is of NVIDIA: %v, want %v", address, got, want)
		}
	}
	if a := accelerator(root, "sim:0", device.Info{Simulated: true}); !errors.Is(a.Err, errSimulated) {
		t.Errorf("simulated: %v", a.Err)
	}
	if a := accelerator(root, "vulkan:0", device.Info{}); !errors.Is(a.Err, errAddress) {
		t.Errorf("without an address: %v", a.Err)
	}
	if a := accelerator(root, "vulkan:0", device.Info{Address: "0000:02:00.0"}); a.Err != nil || a.Counter != nil ||
		a.Name != "vulkan:0" || a.Address != "0000:02:00.0" {
		t.Errorf("a device with hwmon: %+v", a)
	}
}
