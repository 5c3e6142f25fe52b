// Package energy reads the energy counters of processors and devices: RAPL zones of Intel and AMD
// processors, counters and power sensors of GPUs in hwmon, and counters that a driver's library
// provides. A source that cannot be read has an error instead of a figure.
package energy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Domain is the part of a machine that a source measures.
type Domain string

// The domains. Package includes Core and Uncore but not Memory; Platform includes all others but
// devices with a power supply of their own.
const (
	Package  Domain = "package"
	Core     Domain = "core"
	Uncore   Domain = "uncore"
	Memory   Domain = "dram"
	Platform Domain = "psys"
	Device   Domain = "device"
	other    Domain = "other"
)

// Source is an energy counter, or a part of the machine without one.
type Source struct {
	Name   string  `json:"source"` // "package-0", "package-0/dram", or the id of a device
	Domain Domain  `json:"domain"`
	Method string  `json:"method,omitempty"` // how the energy is obtained
	Joules float64 `json:"joules"`           // since the meter was opened
	Err    error   `json:"-"`                // why Joules is invalid; nil if it is valid
}

// MarshalJSON writes joules, or not_readable with the reason.
func (s Source) MarshalJSON() ([]byte, error) {
	type plain Source // without this method
	if s.Err == nil {
		return json.Marshal(plain(s))
	}
	return json.Marshal(struct {
		Name   string `json:"source"`
		Domain Domain `json:"domain"`
		Reason string `json:"not_readable"`
	}{s.Name, s.Domain, s.Err.Error()})
}

// Reading has the sources of a machine, sorted by domain as listed above, then by name.
type Reading []Source

// Methods of sources.
const (
	methodRAPL  = "RAPL counter"
	methodHwmon = "hwmon counter"
	methodPower = "hwmon power sensor, integrated"
)

// errStill says that the counters had the same values at both ends of an interval.
var errStill = errors.New("the energy counters did not advance")

// Sub returns the energy since an earlier reading of the same meter.
func (r Reading) Sub(before Reading) Reading {
	out := slices.Clone(r)
	for i := range out {
		if i < len(before) {
			out[i].Joules -= before[i].Joules
			out[i].Err = cmp.Or(out[i].Err, before[i].Err)
		}
	}
	return out
}

// Add returns the energy of two intervals of the same meter. The zero Reading adds nothing.
func (r Reading) Add(o Reading) Reading {
	if len(r) == 0 {
		return slices.Clone(o)
	}
	out := slices.Clone(r)
	for i := range out {
		if i < len(o) {
			out[i].Joules += o[i].Joules
			out[i].Err = cmp.Or(out[i].Err, o[i].Err)
		}
	}
	return out
}

// counted reports whether Total adds a domain.
func (d Domain) counted() bool { return d == Package || d == Memory || d == Device }

// Total returns the energy of packages, memory and devices in joules. Parts of packages and the
// platform are left out, since these energies overlap. It returns an error if there is no package,
// if a package, memory or device is not readable, or if no counter advanced.
func (r Reading) Total() (joules float64, err error) {
	packages := 0
	for _, s := range r {
		if !s.Domain.counted() {
			continue
		}
		if s.Err != nil {
			return 0, fmt.Errorf("%s: %w", s.Name, s.Err)
		}
		if s.Domain == Package {
			packages++
		}
		joules += s.Joules
	}
	switch {
	case packages == 0:
		return 0, errNoPackage
	case !(joules > 0):
		return 0, errStill
	}
	return joules, nil
}

// Summed returns the names of the sources that Total adds, separated by commas.
func (r Reading) Summed() string {
	var names []string
	for _, s := range r {
		if s.Domain.counted() {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

// order returns the position of a domain in readings.
func (d Domain) order() int {
	return slices.Index([]Domain{Package, Core, Uncore, Memory, Platform, Device, other}, d)
}
