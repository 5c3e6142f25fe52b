package report

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel/devgen"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/device/sim"
)

// driver has one simulated device, or none.
type driver struct {
	config sim.Config
	info   device.Info // beyond the name and so on
	err    error
	open   error
}

func (d driver) List(context.Context) ([]device.Info, error) {
	if d.err != nil {
		return nil, d.err
	}
	return []device.Info{{Name: "simulated device", API: "sim", Driver: "1", MemoryBytes: 1 << 30,
		Software: d.info.Software, Address: d.info.Address}}, nil
}

func (d driver) Open(context.Context, int) (device.Device, error) {
	if d.open != nil {
		return nil, d.open
	}
	return sim.New(d.config), nil
}

func init() {
	timed := sim.Config{Mode: sim.Timed, MemoryBytes: 40 << 20, Unified: true,
		Sleep: func(time.Duration, <-chan struct{}) error { return nil }}
	device.Register("a", driver{config: timed})
	device.Register("b", driver{err: errors.New("load libb.so:\nnot found")})
	device.Register("c", driver{open: errors.New("it lacks a feature")})
	device.Register("d", driver{config: sim.Config{Fault: func(device.Ticket) sim.Fault { return sim.Crash }}})
	instant := func(i device.Info) driver { return driver{config: timed, info: i} }
	device.Register("f", instant(device.Info{Software: true, Address: "0000:01:00.0"}))
	device.Register("g", instant(device.Info{Address: "0000:01:00.0"}))
	device.Register("h", instant(device.Info{Address: "0000:01:00.0"}))
	device.Register("e", driver{config: sim.Config{Refuse: func(*devgen.Kernel) error { return errors.New("no") }}})
}

// TestDevices checks the description of devices that work and of those that do not.
func TestDevices(t *testing.T) {
	all := Devices(t.Context(), func(ctx context.Context, id string, d device.Device) (devrates.Device, error) {
		r := rates.Describe(id, "", d.Info())
		_, err := rates.Add(ctx, d, &r, rates.Usual()[0])
		return r, err
	})
	if len(all) != 8 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []string{5: "its driver computes on the cores", 7: "it is the same device as g:0"} {
		if got := all[i].NotAutomatic; got != want {
			t.Errorf("%s is not used by auto because %q, want %q", all[i].ID, got, want)
		}
	}
	a := all[0]
	if a.ID != "a:0" || a.Problem != "" || !a.Unified || a.MemoryBytes != 40<<20 || len(a.Exact) != 7 {
		t.Errorf("%+v", a)
	}
	if a.Rates == nil {
		t.Error("no rates")
	} else if r := *a.Rates; r.ReadBytesPerSecond <= 0 || r.WriteBytesPerSecond <= 0 || r.CopyBackBytesPerSecond <= 0 ||
		r.LaunchSeconds <= 0 || r.StepSeconds <= 0 {
		t.Errorf("%+v", r)
	}
	for i, want := range map[int]string{1: "not found", 2: "it lacks a feature", 3: "simulated crash", 4: "refuses"} {
		if !strings.Contains(all[i].Problem, want) || all[i].Rates != nil {
			t.Errorf("%+v, want %q", all[i], want)
		}
	}
	var out bytes.Buffer
	if err := Write(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a:0        simulated device (sim, driver 1)\n  memory       0.0 GiB, 0.0 GiB free, shared with the cores\n",
		"  exact        fma, product,",
		"b          no device: load libb.so: not found\n",
		"c:0        simulated device (sim, driver 1)\n  memory       1.0 GiB\n",
		"  problem      device c:0: it lacks a feature\n",
		"  energy       not readable: the device is simulated\n",
		"alone, ",
		"kernels      product q8_0 int8: ",
		"kernels      attention: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, out.String())
		}
	}
}

// TestText checks what is written of a device with repaired and inexact classes, and of no drivers.
func TestText(t *testing.T) {
	var out bytes.Buffer
	fma := []string{"fma"}
	all := []Device{{ID: "x:0", Name: "X", Exact: fma, Repaired: fma, Inexact: []string{"product"},
		NotAutomatic: "it is\nslow"}}
	if err := Write(&out, all); err != nil {
		t.Fatal(err)
	}
	const want = `x:0        X (, driver )
  memory       unlimited
  auto         not used by --device auto: it is slow
  exact        fma
               of these by sequences of other operations: fma
  inexact      product
  energy       in the counters of the processor package
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := Write(&out, nil); err != nil || out.String() != "this program has no device drivers\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestHostProgram(t *testing.T) {
	file, err := HostProgram()
	if err != nil {
		t.Skipf("device drivers need a C library that is linked dynamically: %v", err)
	}
	if _, err := elf.NewFile(bytes.NewReader(file)); err != nil {
		t.Error(err)
	}
}
