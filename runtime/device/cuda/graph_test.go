package cuda

import (
	"strings"
	"testing"

	"sandwich/microkernel/devgen"
	"sandwich/runtime/device"
)

// addSteps returns commands that add 1 to the words of a buffer, ten times.
func addSteps(t testing.TB, d device.Device, to device.Buffer) device.Commands {
	t.Helper()
	b := devgen.NewBuilder("test_add", 64)
	words := b.Binding("to", devgen.ReadWrite)
	i := b.MulAdd(b.Builtin(devgen.GroupX), b.U(64), b.Builtin(devgen.LocalIndex))
	b.Store(words, i, b.Add(b.Load(words, i), b.Push("summand", devgen.U32)))
	k, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(k)
	if err != nil {
		t.Fatal(err)
	}
	var steps []device.Step
	for range 10 {
		steps = append(steps, device.Launch{Program: p, Groups: [3]int{1, 1, 1},
			Buffers: []device.Slice{{Buffer: to}}, Push: []uint32{1}})
	}
	c, err := d.Record(steps...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGraphFaults checks that commands run once per submission if the driver refuses a call of
// graphs or is too old for them.
func TestGraphFaults(t *testing.T) {
	saved := graphFunctions
	defer func() { graphFunctions = saved }()
	for _, c := range []struct {
		fault   string
		missing []string // functions
		graph   bool     // the commands become one
	}{
		{fault: "", graph: true},
		{fault: "fail:cuStreamBeginCapture_v2:900"},
		{fault: "fail:cuStreamEndCapture:901"},
		{fault: "fail:cuGraphInstantiateWithFlags:801"},
		{fault: "fail:cuGraphLaunch:801", graph: true},
		{fault: "fail:cuGraphDestroy:1"},
		{missing: saved[:1], graph: true},
		{missing: saved[:1], fault: "fail:cuGraphInstantiate_v2:801"},
		{missing: saved[:2]},
		{missing: saved},
	} {
		t.Run(c.fault+strings.Join(c.missing, ","), func(t *testing.T) {
			graphFunctions = nil
			for i, name := range saved {
				if i < len(c.missing) {
					name = "no_" + name
				}
				graphFunctions = append(graphFunctions, name)
			}
			useStub(t, c.fault)
			d := open(t)
			b, err := d.Alloc(256, device.HostVisible)
			if err != nil {
				t.Fatal(err)
			}
			recorded := addSteps(t, d, b)
			for range 4 {
				ticket, err := d.Submit(recorded)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Wait(t.Context(), ticket); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.Host()[0]; got != 40 {
				t.Errorf("four submissions of ten additions gave %d", got)
			}
			if refusal := d.(*openDevice).graphs.refusal; (refusal == nil) != (c.graph && c.fault == "") {
				t.Errorf("the refusal is %v", refusal)
			}
			if got := recorded.(*commands).graph != 0; got != c.graph {
				t.Errorf("the commands are a graph: %v, want %v", got, c.graph)
			}
			if err := recorded.Free(); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGraphLost checks that a driver that ends while it captures or starts a graph is an error of
// the submission.
func TestGraphLost(t *testing.T) {
	for _, call := range []string{"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphLaunch"} {
		t.Run(call, func(t *testing.T) {
			useStub(t, "crash:"+call)
			d := open(t)
			b, err := d.Alloc(256, device.DeviceLocal)
			if err != nil {
				t.Fatal(err)
			}
			recorded := addSteps(t, d, b)
			if _, err := d.Submit(recorded); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Submit(recorded); err == nil || !strings.Contains(err.Error(), device.ErrLost.Error()) {
				t.Errorf("%v, want an error that the device is lost", err)
			}
			if err := recorded.Free(); err != nil {
				t.Error(err)
			}
			_ = d.Close()
		})
	}
}
