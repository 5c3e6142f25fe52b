package rates

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/qtype"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/sim"
	"sandwich/topotree/hwloc"
)

// counted returns a device that computes nothing and counts its submissions.
func counted(t *testing.T, refuse string) (*sim.Device, *atomic.Int64) {
	n := new(atomic.Int64)
	d := sim.New(sim.Config{Mode: sim.Timed, MemoryBytes: 64 << 20,
		Sleep: func(time.Duration, <-chan struct{}) error { return nil },
		Fault: func(device.Ticket) sim.Fault {
			n.Add(1)
			return sim.None
		},
		Refuse: func(k *devgen.Kernel) error {
			if refuse != "" && strings.Contains(k.Name, refuse) {
				return errors.New("refused")
			}
			return nil
		}})
	t.Cleanup(func() { d.Close() })
	return d, n
}

// TestAdd checks that rates of all classes are measured once, that a refused class is omitted, and
// that the result can be stored.
func TestAdd(t *testing.T) {
	d, submissions := counted(t, "q4_k")
	r := Describe("sim:0", "b", d.Info())
	measured, err := Add(t.Context(), d, &r, Usual()...)
	if err != nil || !measured {
		t.Fatal(measured, err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{Attention: true, Rows: true, "product q8_0 int8": true,
		"product q4_k int8": false, "product q4_k int8-k": false, "product bf16 f32": true} {
		if c := r.Class(name); (c != nil) != want {
			t.Errorf("class %s: %+v", name, c)
		}
	}
	before := submissions.Load()
	r.Classes = append(r.Classes, devrates.Class{Name: "product q4_k int8"},
		devrates.Class{Name: "product q4_k int8-k"})
	if measured, err := Add(t.Context(), d, &r, Usual()...); err != nil || measured || submissions.Load() != before {
		t.Errorf("known rates were measured again: %v %v", measured, err)
	}
}

// pendingDevice is a device whose submissions stay pending until a call of Wait that the context
// cannot end. Its commands must not be freed while one is pending.
type pendingDevice struct {
	*sim.Device
	t       *testing.T
	cancel  context.CancelFunc // called after a submission
	waited  chan struct{}      // closed by such a call
	pending atomic.Uint64
}

type pendingCommands struct {
	device.Commands
	device *pendingDevice
}

func (d *pendingDevice) Record(steps ...device.Step) (device.Commands, error) {
	c, err := d.Device.Record(steps...)
	return &pendingCommands{c, d}, err
}

func (d *pendingDevice) Submit(c device.Commands) (device.Ticket, error) {
	ticket, err := d.Device.Submit(c.(*pendingCommands).Commands)
	d.pending.Store(uint64(ticket))
	d.cancel()
	return ticket, err
}

func (d *pendingDevice) Wait(ctx context.Context, ticket device.Ticket) error {
	if ctx.Done() == nil {
		close(d.waited)
	}
	return d.Device.Wait(ctx, ticket)
}

func (c *pendingCommands) Free() error {
	if !c.device.Reached(device.Ticket(c.device.pending.Load())) {
		c.device.t.Error("the commands of a pending submission were freed")
	}
	return c.Commands.Free()
}

// TestCanceled checks that a measurement that ends early frees nothing that the device still uses.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := &pendingDevice{t: t, cancel: cancel, waited: make(chan struct{})}
	d.Device = sim.New(sim.Config{Mode: sim.Timed, MemoryBytes: 64 << 20, Fault: func(device.Ticket) sim.Fault {
		select {
		case <-d.waited:
		case <-d.Lost():
		}
		return sim.None
	}})
	t.Cleanup(func() { d.Close() })
	r := Describe("sim:0", "b", d.Info())
	if _, err := Add(ctx, d, &r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestFastest checks that the first run, in which a driver may compile, never counts, and that runs
// end early on a slow device.
func TestFastest(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct {
		takes []time.Duration
		want  time.Duration
		runs  int
	}{
		{[]time.Duration{9 * ms, 5 * ms, 3 * ms, 4 * ms, 1 * ms}, 3 * ms, repetitions + 1},
		{[]time.Duration{1800 * ms, 5 * ms, 3 * ms, 4 * ms}, 3 * ms, repetitions + 1},
		{[]time.Duration{1 * ms, 5 * ms, 3 * ms, 4 * ms}, 3 * ms, repetitions + 1},
		{[]time.Duration{3000 * ms, 2500 * ms, 2400 * ms}, 2500 * ms, 2},
		{[]time.Duration{0, 0, 0, 0}, 1, repetitions + 1},
	} {
		clock, runs := time.Time{}, 0
		got, err := fastestBy(func() time.Time { return clock }, func() error {
			clock = clock.Add(x.takes[runs])
			runs++
			return nil
		})
		if err != nil || got != x.want || runs != x.runs {
			t.Errorf("runs of %v: %v after %d runs, %v", x.takes, got, runs, err)
		}
	}
	if _, err := fastest(func() error { return device.ErrLost }); !errors.Is(err, device.ErrLost) {
		t.Errorf("%v", err)
	}
}

// TestStore checks that rates are measured once for a device, a driver and a program, again on
// request, and that other entries are kept.
func TestStore(t *testing.T) {
	machine, err := hwloc.ReadSynthetic("core:2")
	if err != nil {
		t.Fatal(err)
	}
	live := func() (*profiles.Profile, error) { return profiles.New(machine, profiles.Identity{Arch: "amd64"}), nil }
	folder := filepath.Join(t.TempDir(), "data")
	one := Product{qtype.Q8_0, microkernel.ComputeInt8}
	of := func(build, id string, again bool, products ...Product) int64 {
		d, submissions := counted(t, "")
		s := NewStore(folder, build)
		s.live = live
		r, err := s.Of(t.Context(), id, d, again, products...)
		if err != nil || r.LaunchSeconds <= 0 || len(r.Classes) < 2+len(products) {
			t.Fatalf("%+v %v", r, err)
		}
		return submissions.Load()
	}
	for i, c := range []struct {
		build, id string
		again     bool
		products  []Product
		measures  bool
	}{
		{"a", "sim:0", false, []Product{one}, true},
		{"a", "sim:0", false, []Product{one}, false},
		{"a", "sim:0", false, nil, false},
		{"a", "sim:0", false, []Product{one, {qtype.F16, microkernel.ComputeF32}}, true},
		{"a", "sim:1", false, nil, true},
		{"a", "sim:0", false, []Product{one}, false},
		{"a", "sim:0", true, []Product{one}, true},
		{"b", "sim:0", false, nil, true},
	} {
		if n := of(c.build, c.id, c.again, c.products...); (n > 0) != c.measures {
			t.Errorf("use %d: %d submissions, want some: %v", i, n, c.measures)
		}
	}
	s := NewStore(folder, "b")
	s.live = live
	host, _ := s.load()
	if len(host.Devices) != 2 || host.Device("sim:1") == nil {
		t.Errorf("%+v", host.Devices)
	}
}
