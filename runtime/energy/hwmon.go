package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// errNoSensor says that a GPU has neither an energy counter nor a power sensor in hwmon.
var errNoSensor = errors.New("its driver has no energy counter and no power sensor in hwmon")

// gpuDrivers are the names of the hwmon folders of GPUs. The folders i915_gt0 and i915_gt1 measure
// parts of the card.
var gpuDrivers = []string{"amdgpu", "i915", "xe", "nouveau"}

// pciAddress matches the address of a PCI device as sysfs writes it.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// hwmonOf returns the counter, or else the power sensor, of the PCI device with an address.
func hwmonOf(root fs.FS, name, address string) *part {
	missing := &part{source: Source{Name: name, Domain: Device, Err: errNoSensor}}
	if !pciAddress.MatchString(address) {
		missing.source.Err = fmt.Errorf("invalid PCI address %.20q", address)
		return missing
	}
	dirs, _ := fs.Glob(root, path.Join("sys/bus/pci/devices", address, "hwmon/hwmon[0-9]*"))
	for _, dir := range dirs[:min(len(dirs), maxZones)] {
		if slices.Contains(gpuDrivers, label(root, path.Join(dir, "name"), "")) {
			return sensor(root, name, dir)
		}
	}
	return missing
}

// gpus returns the counters of all GPUs in hwmon, named after the driver and the hwmon folder.
func gpus(root fs.FS) (parts []*part) {
	dirs, _ := fs.Glob(root, "sys/class/hwmon/hwmon[0-9]*")
	for _, dir := range dirs[:min(len(dirs), maxZones)] {
		driver := label(root, path.Join(dir, "name"), "")
		if slices.Contains(gpuDrivers, driver) {
			parts = append(parts, sensor(root, driver+" ("+path.Base(dir)+")", dir))
		}
	}
	return parts
}

// sensor returns the energy counter of a hwmon folder, or else its power sensor. Of several
// counters (xe) the first one measures the whole card.
func sensor(root fs.FS, name, dir string) *part {
	p := &part{source: Source{Name: name, Domain: Device, Method: methodHwmon}}
	for _, file := range []string{"energy1_input", "power1_average", "power1_input"} {
		full := path.Join(dir, file)
		if _, err := fs.Stat(root, full); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if p.power = strings.HasPrefix(file, "power"); p.power {
			p.source.Method = methodPower
		}
		p.read = func() (float64, error) { // in µJ or µW
			v, err := readNumber(root, full)
			return float64(v) / 1e6, err
		}
		return p
	}
	p.source.Method, p.source.Err = "", errNoSensor
	return p
}
