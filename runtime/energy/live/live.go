// Package live opens energy meters of this machine and of the device that runs forwards.
package live

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"sandwich/runtime/device"
	"sandwich/runtime/energy"
	"sandwich/runtime/energy/nvml"
)

var (
	errSimulated = errors.New("the device is simulated")
	errAddress   = errors.New("its driver does not report a PCI address")
)

// Open starts a meter of the processors and of a device with an id. d may be nil. The energy of a
// device that shares the memory of the cores is part of that of the processor.
func Open(id string, d device.Device) *energy.Meter {
	root := os.DirFS("/")
	if d == nil {
		return energy.Open(root)
	}
	info := d.Info()
	if ofPackage(info) {
		return energy.Open(root)
	}
	return energy.Open(root, accelerator(root, id, info))
}

// Probe reads the energy counter of a device once. It returns nil if the energy of the device is
// part of that of the processor.
func Probe(id string, info device.Info) *energy.Source {
	if ofPackage(info) {
		return nil
	}
	root := os.DirFS("/")
	s := energy.Probe(root, accelerator(root, id, info))
	return &s
}

// ofPackage reports whether a device is part of the processor.
func ofPackage(info device.Info) bool { return info.Unified && !info.Simulated }

// accelerator returns the energy counter of a device. NVIDIA's are read through NVML, all others
// through hwmon below root.
func accelerator(root fs.FS, id string, info device.Info) energy.Accelerator {
	a := energy.Accelerator{Name: id, Address: info.Address}
	switch {
	case info.Simulated:
		a.Err = errSimulated
	case info.Address == "":
		a.Err = errAddress
	case info.API == "CUDA" || isNVIDIA(root, info.Address):
		c, err := nvml.Open(info.Address)
		if err != nil {
			a.Err = err
		} else {
			a.Counter = c
		}
	}
	return a
}

// isNVIDIA reports whether NVIDIA made the PCI device.
func isNVIDIA(root fs.FS, address string) bool {
	vendor, err := fs.ReadFile(root, path.Join("sys/bus/pci/devices", address, "vendor"))
	return err == nil && string(vendor) == "0x10de\n"
}
