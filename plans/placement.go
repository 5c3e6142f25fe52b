package plans

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sandwich/internal/message"
	"sandwich/microkernel"
	"sandwich/microkernel/devgen/weights"
	"sandwich/profiles"
	"sandwich/runtime/phase"
)

// Placement assigns ops of a phase to a device.
type Placement struct {
	Phase  string   `yaml:"phase" json:"phase"`   // prefill or decode
	Ops    []string `yaml:"ops,flow" json:"ops"`  // kinds of ops, AllOps or DenseOps
	Device string   `yaml:"device" json:"device"` // an ID that `sandwich doctor devices` lists, or cores
	// on a host without the device the cores run the ops; absent: such a host rejects the plan
	Optional bool `yaml:"optional,omitempty" json:"optional,omitempty"`
	// size of the copy of the weights that the device holds in addition to that of the cores, one
	// for all entries; absent: they share one copy, or the size is not known
	CopyBytes int64 `yaml:"copy_bytes,omitempty" json:"copy_bytes,omitempty"`
}

// Limits and names of placements.
const (
	maxPlacements   = 16
	maxPlacementOps = 64
	deviceCores     = "cores" // the workers of the plan
	maxCopyBytes    = 1 << 48
	deviceArmPrefix = "on device "
)

// Ops that a placement moves to a device.
const (
	AllOps   = "all"
	DenseOps = "dense" // all but the routing and the products of experts, which the cores compute
)

// DeviceOps returns the ops of the model that a device can run.
func (s ModelShape) DeviceOps() string {
	if s.Experts > 0 {
		return DenseOps
	}
	return AllOps
}

// CheckDeviceOps returns an error if a device cannot run these ops of the model.
func (s ModelShape) CheckDeviceOps(ops string) error {
	switch can := s.DeviceOps(); {
	case ops == can:
		return nil
	case ops == AllOps:
		return fmt.Errorf("no device kernel computes the %d experts of the model: use %s, which leaves them to the "+
			"cores", s.Experts, DenseOps)
	case ops == DenseOps:
		return fmt.Errorf("the model has no experts for the cores: use %s", AllOps)
	}
	return fmt.Errorf("ops %.40q are unknown: use %s or %s", ops, AllOps, DenseOps)
}

var opPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
})

var devicePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_.:-]{0,63}$`)
})

// PlaceOn returns the placement of AllOps or DenseOps of phases on a device.
func PlaceOn(device, ops string, optional bool, phases ...phase.Phase) (list []Placement) {
	for _, p := range phases {
		list = append(list, Placement{Phase: p.String(), Ops: []string{ops}, Device: device, Optional: optional})
	}
	return list
}

// DeviceArm returns the name of an arm that runs on a device in the evidence of a plan.
func DeviceArm(id string) string { return deviceArmPrefix + id }

// IsDeviceArm reports whether an arm of that name ran some phases on a device.
func IsDeviceArm(name string) bool { return strings.Contains(name, deviceArmPrefix) }

// placementOf checks the entries of a file. It drops placements on the cores, which have no effect,
// and sorts the others by phase, so that equal plans have equal digests.
func placementOf(entries []Placement) (list []Placement, err error) {
	if len(entries) > maxPlacements {
		return nil, fmt.Errorf("placement has %d entries, above %d", len(entries), maxPlacements)
	}
	for i, p := range entries {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("placement[%d]: %w", i, err)
		}
		if p.Device != deviceCores {
			list = append(list, p)
		}
	}
	for _, p := range entries {
		for _, q := range list {
			if p.Phase == q.Phase && p.Device != q.Device {
				return nil, fmt.Errorf("placement: phase %s is on both %s and %s; this build places a phase on one "+
					"device only", p.Phase,
					p.Device, q.Device)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Placement) int { return -cmp.Compare(a.Phase, b.Phase) })
	return list, checkDistinct(list)
}

// checkDistinct checks that each phase is placed once and that all phases are on one device.
func checkDistinct(list []Placement) error {
	for i := 1; i < len(list); i++ {
		switch {
		case list[i].Phase == list[i-1].Phase:
			return fmt.Errorf("placement lists %s twice", list[i].Phase)
		case list[i].CopyBytes != list[0].CopyBytes:
			return fmt.Errorf("placement has copies of %d and %d bytes: a device holds one copy of the weights",
				list[0].CopyBytes, list[i].CopyBytes)
		case list[i].Device != list[0].Device:
			return fmt.Errorf("placement has the devices %s and %s: this build uses one device for a plan",
				list[0].Device, list[i].Device)
		case list[i].Ops[0] != list[0].Ops[0]:
			return fmt.Errorf("placement has ops %s and %s on device %s: this build moves the same ops of both phases",
				list[0].Ops[0], list[i].Ops[0], list[0].Device)
		}
	}
	return nil
}

func (p *Placement) check() error {
	if _, err := phase.Parse(p.Phase); err != nil {
		return fmt.Errorf("phase %.40q is not prefill or decode", p.Phase)
	}
	if len(p.Ops) == 0 || len(p.Ops) > maxPlacementOps {
		return fmt.Errorf("%d ops, not in 1..%d", len(p.Ops), maxPlacementOps)
	}
	if p.CopyBytes < 0 || p.CopyBytes > maxCopyBytes {
		return fmt.Errorf("copy_bytes %d is not in 0..%d", p.CopyBytes, int64(maxCopyBytes))
	}
	for _, op := range p.Ops {
		if !opPattern().MatchString(op) {
			return fmt.Errorf("op %.40q is not 1 to 32 lower-case letters, digits and _, starting with a letter", op)
		}
	}
	switch {
	case !devicePattern().MatchString(p.Device):
		return fmt.Errorf("device %.40q is not 1 to 64 lower-case letters, digits, _ . : and -, starting with a "+
			"letter", p.Device)
	case p.Device == deviceCores:
		return nil
	case len(p.Ops) != 1 || p.Ops[0] != AllOps && p.Ops[0] != DenseOps:
		return fmt.Errorf("ops %s on device %s: this build moves whole phases, or all but the experts: write ops: "+
			"[%s] or [%s]", message.Clip(strings.Join(p.Ops, ", "), 60), p.Device, AllOps, DenseOps)
	}
	return nil
}

// checkPlacement checks the placement and that a device can run the plan.
func (p *Plan) checkPlacement() error {
	if len(p.Placement) == 0 {
		return nil
	}
	list, err := placementOf(p.Placement)
	if err != nil {
		return err
	}
	if len(list) != len(p.Placement) {
		return fmt.Errorf("placement: entries on %s have no effect: leave them out", deviceCores)
	}
	if len(list) == 0 {
		return nil
	}
	err = p.Model.CheckDeviceOps(p.DeviceOps())
	if err == nil {
		err = p.DeviceKernels()
	}
	if err != nil {
		return fmt.Errorf("placement: device %s: %w", list[0].Device, err)
	}
	return nil
}

// DeviceKernels returns an error that names what no device kernel computes as the plan requires it,
// or nil. The cores compute experts. Ops that only some models have are checked when the model is
// loaded.
func (p *Plan) DeviceKernels() error {
	if dot := microkernel.AttentionDots()[0]; p.Attention != dot {
		return fmt.Errorf("there is no kernel for attention by %s: use %s", p.Attention, dot)
	}
	if p.KV != microkernel.KVF16 {
		return fmt.Errorf("there is no kernel for a KV cache of type %s: use %s", p.KV, microkernel.KVF16)
	}
	if n := p.TP(); n > 1 {
		return fmt.Errorf("the %d ranks of the plan would divide the weights: use one rank", n)
	}
	for _, w := range p.Weights {
		if p.Model.OnlyRouted(w.WeightKey) {
			continue
		}
		t, err := microkernel.ParseWeightType(w.Type)
		if err == nil {
			err = weights.Supports(t, w.Compute)
		}
		if err != nil {
			return fmt.Errorf("weight %s: %w", w.WeightKey, err)
		}
	}
	return nil
}

// OnlyRouted reports whether all weights with a key belong to experts.
func (s ModelShape) OnlyRouted(k WeightKey) bool {
	return s.Experts > 0 && !slices.ContainsFunc(s.Weights, func(w WeightShape) bool {
		return w.Key() == k && !s.Routed(w)
	})
}

// DeviceOps returns the ops of the placed phases that the device runs, AllOps or DenseOps; "" if
// the cores run both phases.
func (p *Plan) DeviceOps() string {
	if len(p.Placement) == 0 {
		return ""
	}
	return p.Placement[0].Ops[0]
}

// Device returns the device of the plan and the phases that it runs; "" if the cores run both.
// optional reports whether the cores may take its place.
func (p *Plan) Device() (id string, phases []phase.Phase, optional bool) {
	optional = true
	for i := range p.Placement {
		q := &p.Placement[i]
		if ph, err := phase.Parse(q.Phase); err == nil {
			id, phases, optional = q.Device, append(phases, ph), optional && q.Optional
		}
	}
	return id, phases, optional && id != ""
}

// PlacementText describes the devices of a plan: "prefill on device cuda:0"; "" if there are none.
func (p *Plan) PlacementText() string {
	id, phases, optional := p.Device()
	if id == "" {
		return ""
	}
	var names []string
	for _, ph := range phases {
		names = append(names, ph.String())
	}
	text := fmt.Sprintf("%s on device %s", strings.Join(names, " and "), id)
	if p.DeviceOps() == DenseOps {
		text += " with the experts on the PUs"
	}
	if optional {
		text += ", or on the PUs if the host lacks it"
	}
	if n := p.Placement[0].CopyBytes; n > 0 {
		text += fmt.Sprintf("; it holds a second copy of the weights, %s", mebibytes(n))
	}
	return text
}

// PlaceText describes where a phase runs.
func (p *Plan) PlaceText(ph phase.Phase) string {
	for i := range p.Placement {
		if q := &p.Placement[i]; q.Phase == ph.String() {
			text := q.Device
			if q.Ops[0] == DenseOps {
				text += ", dense ops"
			}
			if q.Optional {
				text += ", optional"
			}
			if q.CopyBytes > 0 {
				text += ", copy of " + mebibytes(q.CopyBytes)
			}
			return text
		}
	}
	return deviceCores
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// checkDevice returns an error if a host whose devices are known lacks the device of the plan and
// the plan does not let the cores take its place.
func (p *Plan) checkDevice(host *profiles.Profile) error {
	id, _, optional := p.Device()
	if id == "" || optional || host.Devices == nil || host.Device(id) != nil {
		return nil
	}
	return foreignHost("the plan %s runs on device %s, and this host has %s; start with --device none to use the cores",
		p.Name, id, host.DeviceText())
}
