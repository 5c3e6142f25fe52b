package autodevice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
)

// fake is a driver whose devices a test sets.
type fake struct {
	detect, list error
	devices      []fakeDevice
	lists, opens int
}

type fakeDevice struct {
	info  device.Info
	exact device.Exactness
	err   error // of opening it
	open  *sim.Device
}

var drivers = map[string]*fake{"a": {}, "b": {}}

func init() {
	for name, d := range drivers {
		device.Register(name, d)
	}
}

func (f *fake) Detect() error { return f.detect }

func (f *fake) List(context.Context) (list []device.Info, err error) {
	f.lists++
	for _, d := range f.devices {
		list = append(list, d.info)
	}
	return list, f.list
}

func (f *fake) Open(_ context.Context, index int) (device.Device, error) {
	f.opens++
	d := &f.devices[index]
	if d.err != nil {
		return nil, d.err
	}
	d.open = sim.New(sim.Config{Name: d.info.Name, Inexact: device.AllExact &^ d.exact})
	return d.open, nil
}

// of returns an exact device with a name and a PCI address.
func of(name, address string) fakeDevice {
	return fakeDevice{info: device.Info{Name: name, Address: address}, exact: device.AllExact}
}

// rig chooses among the devices of drivers a and b. Devices are stored when they are measured, and
// predicted by their names: "10 ms" takes 10 ms; "slow" is slower than the cores.
type rig struct {
	stored   map[string]*devrates.Device
	failures Failures
	rounding bool
	unused   map[string]string
	failed   map[string]error
	measured int
}

func newRig(t *testing.T, a, b fake) *rig {
	t.Helper()
	*drivers["a"], *drivers["b"] = a, b
	now := time.Now()
	r := &rig{stored: map[string]*devrates.Device{}, failures: OpenFailures(t.TempDir(), "x")}
	r.failures.now = func() time.Time { return now }
	return r
}

func (r *rig) choose(t *testing.T) *Choice {
	t.Helper()
	r.unused, r.failed = map[string]string{}, map[string]error{}
	c := Choose(t.Context(), Options{
		Rounding: r.rounding,
		Stored:   func(id string, _ device.Info) *devrates.Device { return r.stored[id] },
		Measure: func(_ context.Context, id string, d device.Device) (devrates.Device, error) {
			r.measured++
			i := d.Info()
			r.stored[id] = &devrates.Device{Name: i.Name, Inexact: (device.AllExact &^ i.Exact).Names()}
			return *r.stored[id], nil
		},
		Predict: func(id string, d *devrates.Device) (Prediction, error) {
			switch d.Name {
			case "slow":
				return Prediction{Text: "the cores are faster"}, nil
			case "unknown":
				return Prediction{}, errors.New("no class")
			}
			var n time.Duration
			if _, err := fmt.Sscanf(d.Name, "%d ms", &n); err != nil {
				t.Fatal(err)
			}
			return Prediction{Uses: true, Takes: n * time.Millisecond, Text: "predicted"}, nil
		},
		Reject: func(i device.Info) string {
			if i.Name == "rejected" {
				return "the plan says no"
			}
			return ""
		},
		Failures: r.failures,
		Opening:  func() {},
		Unused:   func(id, why string) { r.unused[id] = why },
		Failed:   func(id string, err error) { r.failed[id] = err },
	})
	for name, f := range drivers {
		for i, d := range f.devices {
			chosen := c != nil && c.ID == fmt.Sprintf("%s:%d", name, i)
			if d.open != nil && (d.open.Err() == nil) != chosen {
				t.Errorf("%s:%d is chosen: %v; it is closed: %v", name, i, chosen, d.open.Err())
			}
		}
	}
	if c != nil {
		t.Cleanup(func() { c.Device.Close() })
	}
	return c
}

// TestChoose checks which device is used, which are opened, and what is said of the others.
func TestChoose(t *testing.T) {
	absent := fake{detect: errors.New("no driver")}
	software, lacking := of("1 ms", ""), of("1 ms", "")
	software.info.Software, lacking.info.Lacks = true, "Vulkan 1.3"
	inexact, broken := of("1 ms", ""), of("1 ms", "")
	inexact.exact, broken.err = device.AllExact&^(1<<device.Division), errors.New("it cannot be opened")
	for name, c := range map[string]struct {
		a, b   fake
		want   string            // ID of the device; "": the cores
		text   string            // of the choice
		lists  int               // calls of List
		opens  int               // devices that are opened in the first and in the second choice
		again  int               // of them in the second one
		unused map[string]string // reasons
		failed string            // ID
	}{
		"no driver": {a: absent, b: absent, unused: map[string]string{"a": "no driver", "b": "no driver"}},
		"on the cores": {a: fake{devices: []fakeDevice{software}}, b: absent, lists: 1,
			unused: map[string]string{"a:0": "its driver computes on the cores"}},
		"lacking": {a: fake{devices: []fakeDevice{lacking}}, b: absent, lists: 1,
			unused: map[string]string{"a:0": "it lacks Vulkan 1.3"}},
		"rejected": {a: fake{devices: []fakeDevice{of("rejected", "")}}, b: absent, lists: 1,
			unused: map[string]string{"a:0": "the plan says no"}},
		"one": {a: fake{devices: []fakeDevice{of("5 ms", "")}}, b: absent, want: "a:0", text: "predicted", lists: 1,
			opens: 1, again: 1},
		"inexact": {a: fake{devices: []fakeDevice{inexact}}, b: absent, lists: 1, opens: 1,
			unused: map[string]string{"a:0": "it is not exact (division)"}},
		"slow": {a: fake{devices: []fakeDevice{of("slow", "")}}, b: absent, lists: 1, opens: 1,
			unused: map[string]string{"a:0": "the cores are faster"}},
		"without a prediction": {a: fake{devices: []fakeDevice{of("unknown", "")}}, b: absent, lists: 1, opens: 1,
			unused: map[string]string{"a:0": "no prediction: no class"}},
		"the first is faster": {a: fake{devices: []fakeDevice{of("5 ms", "p")}}, b: fake{devices: []fakeDevice{of(
			"9 ms", "q")}}, want: "a:0", text: "the request takes 5ms, on b:0 9ms", lists: 2, opens: 2, again: 1,
			unused: map[string]string{"b:0": "a:0 is faster: the request takes 5ms there and 9ms here"}},
		"the second is faster": {a: fake{devices: []fakeDevice{of("9 ms", "p")}}, b: fake{devices: []fakeDevice{of(
			"5 ms", "q")}}, want: "b:0", text: "the request takes 5ms, on a:0 9ms", lists: 2, opens: 2, again: 1,
			unused: map[string]string{"a:0": "b:0 is faster: the request takes 5ms there and 9ms here"}},
		"two of a driver": {a: fake{devices: []fakeDevice{of("9 ms", "p"), of("5 ms", "q")}}, b: absent, want: "a:1",
			lists: 1, opens: 2, again: 1},
		"one device twice": {a: fake{devices: []fakeDevice{of("9 ms", "p")}}, b: fake{devices: []fakeDevice{of("5 ms",
			"p")}}, want: "a:0", lists: 2, opens: 1, again: 1,
			unused: map[string]string{"b:0": "it is the same device as a:0"}},
		"one device by its second driver": {a: fake{devices: []fakeDevice{inexact}}, b: fake{devices: []fakeDevice{of(
			"5 ms", "")}}, want: "b:0", lists: 2, opens: 2, again: 1},
		"a driver that fails": {a: fake{list: errors.New("error 999")}, b: fake{devices: []fakeDevice{of("5 ms", "")}},
			want: "b:0", lists: 2, opens: 1, again: 1, failed: "a"},
		"a device that fails": {a: fake{devices: []fakeDevice{broken, of("7 ms", "")}}, b: absent, want: "a:1",
			lists: 1, opens: 2, again: 2, failed: "a:0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.a, c.b)
			for i, opens := range []int{c.opens, c.again} {
				drivers["a"].lists, drivers["b"].lists, drivers["a"].opens, drivers["b"].opens = 0, 0, 0, 0
				got := r.choose(t)
				if id := idOf(got); id != c.want || got != nil && !strings.Contains(got.Text, c.text) {
					t.Errorf("choice %d: %q, want %q: %+v", i, id, c.want, got)
				}
				if n := drivers["a"].lists + drivers["b"].lists; n != c.lists {
					t.Errorf("choice %d: %d drivers were loaded, want %d", i, n, c.lists)
				}
				if n := drivers["a"].opens + drivers["b"].opens; n != opens {
					t.Errorf("choice %d: %d devices were opened, want %d", i, n, opens)
				}
				for id, why := range c.unused {
					if !strings.Contains(r.unused[id], why) {
						t.Errorf("choice %d: %s is not used because %q, want %q", i, id, r.unused[id], why)
					}
				}
				if len(r.failed) > 1 || (r.failed[c.failed] == nil) != (c.failed == "") {
					t.Errorf("choice %d: failed: %v, want %q", i, r.failed, c.failed)
				}
			}
		})
	}
}

func idOf(c *Choice) string {
	if c == nil {
		return ""
	}
	return c.ID
}

// TestRounding checks that an inexact device is used where that is permitted.
func TestRounding(t *testing.T) {
	inexact := of("1 ms", "")
	inexact.exact = 0
	r := newRig(t, fake{devices: []fakeDevice{inexact}}, fake{detect: errors.New("none")})
	r.rounding = true
	if c := r.choose(t); idOf(c) != "a:0" {
		t.Errorf("%+v; not used: %v", c, r.unused)
	}
}

// TestStaleRates checks that a device whose self-test differs from that of its stored rates is not
// used.
func TestStaleRates(t *testing.T) {
	inexact := of("1 ms", "")
	inexact.exact = 0
	r := newRig(t, fake{devices: []fakeDevice{inexact, of("2 ms", "")}}, fake{detect: errors.New("none")})
	r.stored["a:0"] = &devrates.Device{Name: "1 ms"}
	if c := r.choose(t); idOf(c) != "a:1" || !strings.Contains(r.unused["a:0"], "not exact") {
		t.Errorf("%+v; not used: %v", c, r.unused)
	}
}

// TestLostDriver checks that a driver or a device that is lost is not tried again for a day by the
// same program.
func TestLostDriver(t *testing.T) {
	lost := fmt.Errorf("%w: signal: aborted", device.ErrLost)
	broken := of("1 ms", "")
	broken.err = lost
	for name, c := range map[string]struct {
		a  fake
		id string
	}{"driver": {fake{list: lost}, "a"}, "device": {fake{devices: []fakeDevice{broken}}, "a:0"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.a, fake{detect: errors.New("none")})
			tries := func() int { return drivers["a"].lists + drivers["a"].opens }
			all := len(c.a.devices) + 1
			if r.choose(t); tries() != all || r.failed[c.id] == nil ||
				!strings.Contains(r.failed[c.id].Error(), "does not try it again for 24 hours") {
				t.Errorf("%d tries, failed: %v", tries(), r.failed)
			}
			if r.choose(t); tries() != all+len(c.a.devices) || len(r.failed) != 0 ||
				!strings.Contains(r.unused[c.id], "signal: aborted") {
				t.Errorf("the second time: %d tries, failed: %v, not used: %v", tries(), r.failed, r.unused)
			}
			for _, change := range []func(*Failures){
				func(f *Failures) { at := f.now().Add(retryAfter); f.now = func() time.Time { return at } },
				func(f *Failures) { f.build = "y" },
				func(f *Failures) { f.Forget() },
			} {
				before := tries()
				change(&r.failures)
				if r.choose(t); tries() != before+all || r.failed[c.id] == nil {
					t.Errorf("after a change: %d tries, want %d; failed: %v", tries()-before, all, r.failed)
				}
			}
		})
	}
}

// TestFailures checks which errors are recorded, and damaged files.
func TestFailures(t *testing.T) {
	f := OpenFailures(t.TempDir(), "x")
	for _, c := range []struct {
		err  error
		want bool
	}{{errors.New("out of memory"), false}, {device.ErrMemory, false}, {device.ErrLost, true},
		{fmt.Errorf("compile: %w", &device.Mismatch{}), true}} {
		if got := f.Add("a", c.err); got != c.want {
			t.Errorf("%v is recorded: %v", c.err, got)
		}
	}
	for _, text := range []string{"", "{", "null", "[1]", `{"a":1}`, `{"a":{"at":"x"}}`} {
		if err := os.WriteFile(f.path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.recent("a"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !f.Add("a", device.ErrLost) || f.recent("a") == nil {
			t.Errorf("%s: the failure is not recorded", text)
		}
	}
	if none := OpenFailures("", "x"); none.Add("a", device.ErrLost) || none.recent("a") != nil {
		t.Error("failures without a folder are recorded")
	}
	if n := len(f.read()); n != 1 {
		t.Errorf("%d records, want one", n)
	}
}
