// Package devrates describes the devices of a host, such as GPUs, with their measured rates, and
// predicts the time of kernels from two measurements per class of kernels: a memory-bound and a
// compute-bound one (Agent.xpu, appendix B).
package devrates

import (
	"fmt"
	"math"
	"strings"
)

// Device is a device of a host in host.yaml. Rates are 0 if they were not measured.
type Device struct {
	ID          string `yaml:"id" json:"id"` // driver and index, such as cuda:0
	Name        string `yaml:"name" json:"name"`
	API         string `yaml:"api" json:"api"`
	Driver      string `yaml:"driver" json:"driver"` // version of the driver
	MemoryBytes int64  `yaml:"memory_bytes" json:"memory_bytes"`
	Unified     bool   `yaml:"unified,omitempty" json:"unified,omitempty"` // uses the memory of the cores
	Build       string `yaml:"build,omitempty" json:"build,omitempty"`     // program whose kernels were measured
	// classes of arithmetic that the self-test found inexact
	Inexact []string `yaml:"inexact,omitempty" json:"inexact,omitempty"`

	// memory rate of a kernel that only reads, B/s
	ReadBytesPerSecond float64 `yaml:"read_bytes_per_second,omitempty" json:"read_bytes_per_second,omitempty"`
	// copies to and from the device, B/s
	WriteBytesPerSecond    float64 `yaml:"write_bytes_per_second,omitempty" json:"write_bytes_per_second,omitempty"`
	CopyBackBytesPerSecond float64 `yaml:"copy_back_bytes_per_second,omitempty" json:"copy_back_bytes_per_second,omitempty"`
	// a submission of one launch with its wait, and each further launch of a submission
	LaunchSeconds float64 `yaml:"launch_seconds,omitempty" json:"launch_seconds,omitempty"`
	StepSeconds   float64 `yaml:"step_seconds,omitempty" json:"step_seconds,omitempty"`
	// of a small kernel
	CompileSeconds float64 `yaml:"compile_seconds,omitempty" json:"compile_seconds,omitempty"`
	Classes        []Class `yaml:"classes,omitempty" json:"classes,omitempty"`
}

// Class has the two anchors of a class of kernels and its least time. Intensities are in FLOP per
// byte.
type Class struct {
	Name             string  `yaml:"name" json:"name"` // such as "product q8_0 int8"
	MemoryIntensity  float64 `yaml:"memory_intensity" json:"memory_intensity"`
	BytesPerSecond   float64 `yaml:"bytes_per_second" json:"bytes_per_second"` // at MemoryIntensity
	ComputeIntensity float64 `yaml:"compute_intensity" json:"compute_intensity"`
	FLOPPerSecond    float64 `yaml:"flop_per_second" json:"flop_per_second"` // at ComputeIntensity
	LeastSeconds     float64 `yaml:"least_seconds" json:"least_seconds"`     // of the smallest kernel of a submission
}

// Seconds predicts the time of a kernel of a submission by its work and the bytes that it moves:
// the longest of the times at the two anchors' rates and of the smallest kernel.
func (c *Class) Seconds(flop, bytes float64) float64 {
	return max(flop/c.FLOPPerSecond, bytes/c.BytesPerSecond, c.LeastSeconds)
}

// Class returns the anchors of a class, or nil if they were not measured.
func (d *Device) Class(name string) *Class {
	for i := range d.Classes {
		if d.Classes[i].Name == name {
			return &d.Classes[i]
		}
	}
	return nil
}

// Same reports whether two entries describe the same device with the same driver and kernels, so
// that the rates of one hold for the other.
func (d *Device) Same(o *Device) bool {
	return d.ID == o.ID && d.Name == o.Name && d.API == o.API && d.Driver == o.Driver &&
		d.MemoryBytes == o.MemoryBytes && d.Build == o.Build
}

// Limits of a file.
const (
	maxClasses = 256
	maxText    = 256
)

// Check rejects names that are too long and rates that are not finite or not positive.
func (d *Device) Check() error {
	if d.ID == "" || max(len(d.ID), len(d.Name), len(d.API), len(d.Driver), len(d.Build)) > maxText {
		return fmt.Errorf("a device without an ID, or with a text of more than %d bytes", maxText)
	}
	if len(d.Inexact) > maxClasses {
		return fmt.Errorf("device %.40s has %d inexact classes, more than %d", d.ID, len(d.Inexact), maxClasses)
	}
	if len(d.Classes) > maxClasses {
		return fmt.Errorf("device %.40s has %d classes, more than %d", d.ID, len(d.Classes), maxClasses)
	}
	for _, v := range []float64{float64(d.MemoryBytes), d.ReadBytesPerSecond, d.WriteBytesPerSecond,
		d.CopyBackBytesPerSecond, d.LaunchSeconds, d.StepSeconds, d.CompileSeconds} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("device %.40s has the rate or size %v", d.ID, v)
		}
	}
	for _, c := range d.Classes {
		for _, v := range []float64{c.MemoryIntensity, c.BytesPerSecond, c.ComputeIntensity, c.FLOPPerSecond,
			c.LeastSeconds} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
				return fmt.Errorf("device %.40s, class %.40q: the value %v is not positive", d.ID, c.Name, v)
			}
		}
	}
	return nil
}

// List names devices for messages: "cuda:0 (NVIDIA H100)"; "no device" if there are none.
func List(all []Device) string {
	var names []string
	for _, d := range all {
		names = append(names, fmt.Sprintf("%s (%s)", d.ID, d.Name))
	}
	if len(names) == 0 {
		return "no device"
	}
	return strings.Join(names, ", ")
}
