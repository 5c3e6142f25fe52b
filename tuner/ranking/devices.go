package ranking

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// devicePath is the arithmetic of devices: 8-bit weights and 16-bit activations (Agent.xpu section
// 6.1).
const devicePath = "f16"

// deviceChunk is the number of rows of a prefill that a device computes in one forward (Agent.xpu
// section 4.4).
const deviceChunk = 256

// fusedOps is the number of device kernels per layer, between which a prefill may be preempted
// (Agent.xpu section 4.2).
const fusedOps = 3

// Devices estimates forwards on devices of a machine that share its memory: each op runs at the
// ceiling of the device of its phase, regardless of the other phase. It implements replay.Cost.
type Devices struct {
	work    *cost.Work
	ceiling roofline.Ceiling
	targets [2]roofline.Target // of prefills, of decode batches
	ops     int
}

// OnDevices estimates forwards of a model whose prefills run on one device of a profile and whose
// decode batches run on another or the same. It also returns the figures that were not measured. If
// a device is unknown, the error lists the devices.
func OnDevices(host *profiles.Profile, o Options, prefill, decode string) (*Devices, []string, error) {
	if o.Shape.Pooled() {
		return nil, nil, errors.New("this model makes embeddings or scores: devices are simulated for one that " +
			"generates text")
	}
	plan, err := heuristic.Default(host, o.Shape, heuristic.Options{KV: o.KV, ISA: o.ISA})
	if err != nil {
		return nil, nil, err
	}
	profile, _ := candidates.Complete(host, plan.Widest(), []string{devicePath})
	set := plan.Prefill.PUs
	ceiling, err := roofline.NewMachine(profile).Ceiling(set, roofline.Path{ISA: plan.Widest(), Type: devicePath})
	if err != nil {
		return nil, nil, err
	}
	d := &Devices{ceiling: ceiling, ops: fusedOps * o.Shape.Layers}
	if d.work, err = cost.NewWork(o.Model, plan); err != nil {
		return nil, nil, err
	}
	for i, name := range []string{prefill, decode} {
		if d.targets[i], err = deviceOf(ceiling, name); err != nil {
			return nil, nil, err
		}
	}
	return d, unmeasured(profile), nil
}

// unmeasured returns the figures of devices and of the memory that were not measured.
func unmeasured(p *profiles.Profile) (list []string) {
	for _, c := range p.Ceilings {
		of := c.Kind == profiles.Bandwidth || c.Device != "" && c.Type == devicePath
		if of && !c.Measured() && c.Median > 0 {
			list = append(list, fmt.Sprintf("%s with %d PUs: %.4g %s", c.Name(), c.PUs, c.Median, c.Unit))
		}
	}
	return list
}

// deviceOf returns a device by name.
func deviceOf(ceiling roofline.Ceiling, name string) (roofline.Target, error) {
	var names []string
	for _, t := range ceiling.Targets[1:] { // after the cores
		device := strings.TrimSuffix(t.Name, "/"+devicePath)
		if device == name {
			return t, nil
		}
		names = append(names, device)
	}
	if len(names) == 0 {
		return roofline.Target{}, fmt.Errorf("the machine has no device with a rate of %s", devicePath)
	}
	return roofline.Target{}, fmt.Errorf("the machine has no device %.40q with a rate of %s: name %s", name, devicePath,
		strings.Join(names, " or "))
}

// Prefill implements replay.Cost.
func (d *Devices) Prefill(pos, n int, head bool) time.Duration {
	rows := cost.Rows{Spans: []cost.Span{{Pos: pos, N: n}}}
	if head {
		rows.Heads = 1
	}
	return d.on(d.targets[0], rows)
}

// Decode implements replay.Cost.
func (d *Devices) Decode(context []int) time.Duration {
	rows := cost.Rows{Heads: len(context)}
	for _, pos := range context {
		rows.Spans = append(rows.Spans, cost.Span{Pos: pos, N: 1})
	}
	return d.on(d.targets[1], rows)
}

// Ops implements replay.Cost.
func (d *Devices) Ops() int { return d.ops }

func (d *Devices) on(t roofline.Target, rows cost.Rows) time.Duration {
	seconds := 0.0
	for _, task := range d.work.Of(rows) {
		seconds += d.ceiling.Seconds(t, task.Work)
	}
	return time.Duration(seconds * float64(time.Second))
}

// Serve runs a trace on the devices under a policy, with one lane per device. Every resident
// request has blocks for the longest one.
func (d *Devices) Serve(t replay.Trace, o sched.Config) (*replay.Report, error) {
	longest := 0
	for i := range t {
		longest = max(longest, t[i].Prompt+t[i].Output)
	}
	o.Chunk, o.Blocks = deviceChunk, sched.Residents(max(1, o.MaxRunning))*kvcache.BlocksFor(longest)
	if prefill, decode := d.targets[0].Name, d.targets[1].Name; prefill == decode {
		o.Lanes = []sched.Lane{{Name: prefill, Phases: phase.All[:]}}
	} else {
		o.Lanes = []sched.Lane{{Name: prefill, Phases: []phase.Phase{phase.Prefill}},
			{Name: decode, Phases: []phase.Phase{phase.Decode}}}
	}
	return replay.Run(t, d, replay.Options{Sched: o})
}
