// Package report describes the devices of this host: memory, exactness and measured rates.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/hostcall"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/energy"
	"sandwich/runtime/energy/live"
)

// Device describes a device, or a driver without one.
type Device struct {
	ID          string           `json:"id"`
	Name        string           `json:"name,omitempty"`
	API         string           `json:"api,omitempty"`
	Driver      string           `json:"driver,omitempty"`
	MemoryBytes uint64           `json:"memory_bytes,omitempty"`
	FreeBytes   uint64           `json:"free_bytes,omitempty"`
	Unified     bool             `json:"unified"`
	HostVisible bool             `json:"host_visible"`
	MatrixUnit  bool             `json:"matrix_unit"`
	Exact       []string         `json:"exact,omitempty"`
	Repaired    []string         `json:"repaired,omitempty"`
	Inexact     []string         `json:"inexact,omitempty"`
	Rates       *devrates.Device `json:"rates,omitempty"`
	Address     string           `json:"pci_address,omitempty"`
	Energy      *energy.Source   `json:"energy,omitempty"` // absent if the device shares the cores' memory
	// NotAutomatic is the reason why --device auto does not use the device, whatever the model.
	NotAutomatic string `json:"auto_unused,omitempty"`
	// Problem is the reason why there is no device, or why it cannot be used.
	Problem string `json:"problem,omitempty"`
}

// Measure returns the rates of an open device.
type Measure func(ctx context.Context, id string, d device.Device) (devrates.Device, error)

// Devices opens each device of each registered driver, tests it and measures its rates. A device
// that fails has a Problem.
func Devices(ctx context.Context, measure Measure) []Device {
	var all []Device
	seen := map[string]string{} // usable devices by PCI address
	for _, f := range device.List(ctx) {
		if f.Err != nil {
			all = append(all, Device{ID: f.ID, Problem: f.Err.Error()})
			continue
		}
		d := describe(f.ID, f.Info)
		if err := d.test(ctx, measure); err != nil {
			d.Problem = err.Error()
		}
		if f.Info.Address != "" && seen[f.Info.Address] != "" && d.NotAutomatic == "" {
			d.NotAutomatic = "it is the same device as " + seen[f.Info.Address]
		}
		if d.Problem == "" && d.NotAutomatic == "" {
			seen[f.Info.Address] = f.ID
		}
		all = append(all, d)
	}
	return all
}

func describe(id string, i device.Info) Device {
	return Device{ID: id, Name: i.Name, API: i.API, Driver: i.Driver, MemoryBytes: i.MemoryBytes,
		FreeBytes: i.FreeBytes, Address: i.Address,
		Unified: i.Unified, HostVisible: i.HostVisible, MatrixUnit: i.MatrixUnit, NotAutomatic: i.NotAutomatic()}
}

// test opens the device and fills in what the self-test and the measurement find.
func (d *Device) test(ctx context.Context, measure Measure) (err error) {
	open, err := device.Open(ctx, d.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	i, listed := open.Info(), d.NotAutomatic
	*d = describe(d.ID, i)
	d.Exact, d.Repaired = i.Exact.Names(), i.Repaired.Names()
	d.Inexact = (device.AllExact &^ i.Exact).Names()
	d.NotAutomatic = cmp.Or(listed, d.NotAutomatic, device.InexactText(d.Inexact))
	d.Energy = live.Probe(d.ID, i)
	r, err := measure(ctx, d.ID, open)
	if err != nil {
		return fmt.Errorf("measure %s: %w", d.ID, err)
	}
	d.Rates = &r
	return nil
}

// Write writes a text of a few lines per device.
func Write(w io.Writer, all []Device) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "this program has no device drivers")
		return err
	}
	var b strings.Builder
	for _, d := range all {
		d.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d *Device) write(b *strings.Builder) {
	if d.Name == "" {
		fmt.Fprintf(b, "%-10s no device: %s\n", d.ID, oneLine(d.Problem))
		return
	}
	fmt.Fprintf(b, "%-10s %s (%s, driver %s)\n", d.ID, d.Name, d.API, d.Driver)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("memory", "%s", d.memory())
	if d.Problem != "" {
		line("problem", "%s", oneLine(d.Problem))
	}
	if d.NotAutomatic != "" {
		line("auto", "not used by --device auto: %s", oneLine(d.NotAutomatic))
	}
	if d.Exact == nil {
		return
	}
	line("exact", "%s", list(d.Exact))
	if len(d.Repaired) > 0 {
		line("", "of these by sequences of other operations: %s", list(d.Repaired))
	}
	if len(d.Inexact) > 0 {
		line("inexact", "%s", list(d.Inexact))
	}
	line("energy", "%s", d.energy())
	if r := d.Rates; r != nil {
		line("memory rate", "%.1f GB/s read by a kernel", r.ReadBytesPerSecond/1e9)
		line("copy rate", "%.1f GB/s to the device, %.1f GB/s from it", r.WriteBytesPerSecond/1e9,
			r.CopyBackBytesPerSecond/1e9)
		line("launch", "%v alone, %v each of %d in one submission", microseconds(r.LaunchSeconds),
			microseconds(r.StepSeconds), rates.Launches)
		line("compile", "%v for a small kernel", microseconds(r.CompileSeconds))
		for i := range r.Classes {
			c := &r.Classes[i]
			line("kernels", "%s: %s, %s, at least %v", c.Name, profiles.FormatRate(c.FLOPPerSecond, "FLOP/s"),
				profiles.FormatRate(c.BytesPerSecond, "B/s"), microseconds(c.LeastSeconds))
		}
	}
}

func (d *Device) memory() string {
	text := fmt.Sprintf("%.1f GiB", float64(d.MemoryBytes)/(1<<30))
	if d.MemoryBytes == 0 {
		text = "unlimited"
	}
	if d.FreeBytes > 0 {
		text += fmt.Sprintf(", %.1f GiB free", float64(d.FreeBytes)/(1<<30))
	}
	if d.Unified {
		text += ", shared with the cores"
	}
	return text
}

// energy describes how the energy of the device is counted.
func (d *Device) energy() string {
	switch {
	case d.Energy == nil:
		return "in the counters of the processor package"
	case d.Energy.Err != nil:
		return "not readable: " + oneLine(d.Energy.Err.Error())
	}
	return d.Energy.Method
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func microseconds(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(100 * time.Nanosecond)
}

// HostProgram returns the executable that drivers run in: the bytes that this host would execute.
func HostProgram() ([]byte, error) {
	loader, err := hostcall.Interpreter()
	if err != nil {
		return nil, err
	}
	return hostcall.Executable(runtime.GOARCH, loader)
}
