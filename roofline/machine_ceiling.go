package roofline

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Ceiling returns the ceilings of a set of PUs for one path: the memory bandwidth that all targets
// share, the vector units first, with their classes, then the profile's devices (sme, gpu, npu),
// and the mixed ceiling of all of them. It fails if the profile lacks the memory bandwidth or the
// peak.
func (m *Machine) Ceiling(set topotree.CPUSet, path Path) (Ceiling, error) {
	r, err := m.coreCeiling(set, path)
	if err != nil {
		return r, err
	}
	r.Targets[0].Parts = m.parts(set, path)
	together := map[int]float64{} // by number of concurrent devices
	for _, c := range m.profile.Ceilings {
		switch units := c.Units(); {
		case c.Kind != profiles.Compute || c.Device == "" || c.Type != path.Type:
		case len(units) > 1:
			together[len(units)] = max(together[len(units)], c.Median)
		default:
			r.Targets = append(r.Targets, Target{Name: c.Name(), Peak: c.Median, Units: c.PUs,
				Read: m.deviceReads(c.Device)})
		}
	}
	r.Mixed = together[len(r.Targets)] // a figure of fewer devices does not bound all
	return r, nil
}

// deviceReads returns the bandwidth of a device from the memory of the host, 0 if unknown.
func (m *Machine) deviceReads(device string) (largest float64) {
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Bandwidth && c.Device == device && c.Level == memoryLevel {
			largest = max(largest, c.Median)
		}
	}
	return largest
}

// parts returns the classes of a set.
func (m *Machine) parts(set topotree.CPUSet, path Path) (out []Part) {
	for _, class := range m.Classes() {
		var pus topotree.CPUSet
		for pu := range set.All() {
			if m.Class(pu).ID == class.ID {
				pus = pus.Union(topotree.NewCPUSet(pu))
			}
		}
		if !pus.IsEmpty() {
			out = append(out, Part{Class: class.Name, PUs: pus, Peak: m.ceilingPeak(pus, path).Value,
				Read: m.Bandwidth(pus, Local).Value})
		}
	}
	return out
}

// coreCeiling returns the ceiling of a set of PUs without devices.
func (m *Machine) coreCeiling(set topotree.CPUSet, path Path) (Ceiling, error) {
	bandwidth, peak := m.Bandwidth(set, Local), m.ceilingPeak(set, path)
	if !bandwidth.Known() || !peak.Known() {
		return Ceiling{}, fmt.Errorf("the profile lacks the ceiling of memory or of %s; "+
			"measure them with `sandwich probe --measure quick`", path)
	}
	return Ceiling{Bandwidth: bandwidth.Value, Targets: []Target{{Name: path.String(), Peak: peak.Value}}}, nil
}

// pairedProducts is the assumed ratio of the peaks of int8 and f32 on vectors without a dot product
// of bytes. They multiply four bytes in a lane, with two multiplications: one adds products in
// pairs to 16 bits, the other one adds those to 32 bits.
const pairedProducts = 2

// ceilingPeak returns Peak. If the profile has no peak of int8, as on a CPU whose instruction set
// lacks a dot product of bytes, it assumes one from the peak of f32.
func (m *Machine) ceilingPeak(set topotree.CPUSet, path Path) Answer {
	peak := m.Peak(set, path)
	if peak.Known() || path.Type != microkernel.ComputeInt8.Ceiling() {
		return peak
	}
	if peak = m.Peak(set, Path{path.ISA, microkernel.ComputeF32.Ceiling()}); peak.Known() {
		peak.Value *= pairedProducts
		peak.Assumed, peak.From = true, "by the peak of f32, for vectors without a dot product of bytes"
	}
	return peak
}

// CoreCeilings returns the ceilings of a set of PUs for some data types on one instruction set,
// without devices.
func (m *Machine) CoreCeilings(set topotree.CPUSet, isa string, types []string) (map[string]Ceiling, error) {
	out := map[string]Ceiling{}
	for _, typ := range types {
		r, err := m.coreCeiling(set, Path{isa, typ})
		if err != nil {
			return nil, err
		}
		out[typ] = r
	}
	return out, nil
}
