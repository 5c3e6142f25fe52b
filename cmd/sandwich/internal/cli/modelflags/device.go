package modelflags

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/engine"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
)

// Values of --device without an ID.
const (
	noDevice  = "none"
	anyDevice = "auto"
)

// AddDevice adds the flags of a device, for verbs that run phases on one. Other verbs ignore the
// placement of a plan.
func (f *Flags) AddDevice(c *cobra.Command) {
	f.obeysPlacement = true
	c.Flags().StringVar(&f.device, "device", "", "device for phases that it runs faster than the cores: none, auto "+
		"(the first usable one), or an ID listed by 'sandwich doctor devices', such as cuda:0 (default: as in the "+
		"plan, else none)")
	c.Flags().StringVar(&f.devicePhases, "device-phases", "auto", "phases that run on the device of --device: auto "+
		"(those that it runs faster), prefill, decode or both")
	c.Flags().StringVar(&f.deviceOps, "device-ops", "auto", "ops of these phases that run on the device: all, dense "+
		"(all but the routing and the products of experts, which the cores compute), or auto (dense for a model with "+
		"experts, else all)")
	c.Flags().BoolVar(&f.deviceRounding, "device-rounding", false, "permit a device whose results differ by rounding "+
		"from those of the cores; if it is lost, requests that have started fail")
	c.Flags().BoolVar(&f.deviceDivide, "device-divide", false, "let device and cores compute prompts "+
		"together where that is faster, if the device runs prefill and the cores decode")
	c.Flags().BoolVar(&f.deviceStatic, "device-static", false, "compile kernels for the rows of waiting prompts in "+
		"the background; prompts use those that are ready")
}

// AddTuneDevice adds the flag of the device that tune measures.
func (f *Flags) AddTuneDevice(c *cobra.Command) {
	c.Flags().StringVar(&f.device, "device", noDevice, "device to measure next to the cores: none, auto (the first "+
		"usable one), or an ID listed by 'sandwich doctor devices'; the plan places phases on it that it runs faster")
}

// OpenTuneDevice opens the device of AddTuneDevice, nil for none. The caller closes it.
func (f *Flags) OpenTuneDevice(ctx context.Context) (id string, dev device.Device, err error) {
	if !f.usesDevice() {
		return "", nil, nil
	}
	if id, dev, err = f.findDevice(ctx); err != nil {
		return "", nil, exit.Usage(err)
	}
	if dev == nil {
		show.Notice("--device auto: this host has no usable device")
	}
	return id, dev, nil
}

// usesDevice reports whether --device asks for a device.
func (f *Flags) usesDevice() bool { return f.device != "" && f.device != noDevice }

// phases returns the phases of --device-phases, nil for auto.
func (f *Flags) phases() ([]phase.Phase, error) {
	switch f.devicePhases {
	case "", "auto":
		return nil, nil
	case "prefill":
		return []phase.Phase{phase.Prefill}, nil
	case "decode":
		return []phase.Phase{phase.Decode}, nil
	case "both":
		return phase.All[:], nil
	}
	return nil, fmt.Errorf("--device-phases %s is unknown; give auto, prefill, decode or both",
		show.Clip(f.devicePhases, 20))
}

// ops returns the ops of --device-ops that run on a device.
func (f *Flags) ops(shape plans.ModelShape) (string, error) {
	if f.deviceOps == "" || f.deviceOps == "auto" {
		return shape.DeviceOps(), nil
	}
	if err := shape.CheckDeviceOps(f.deviceOps); err != nil {
		return "", fmt.Errorf("--device-ops %s: %w", f.deviceOps, err)
	}
	return f.deviceOps, nil
}

// openPlanned opens the device of the plan, if it has one.
func (f *Flags) openPlanned(ctx context.Context, s *session.Session) error {
	id, phases, optional := s.Plan.Device()
	if id == "" {
		return nil
	}
	f.Loading.At("opening the device", 0)
	machine.UseCompiledKernels()
	dev, err := device.Open(ctx, id)
	switch {
	case err == nil:
		f.accelerate(s, id, dev, s.Plan.DeviceOps(), phases, optional)
	case optional:
		show.Notice(fmt.Sprintf("note: the cores run %s: %v", phaseList(phases), err))
	default:
		return exit.Plan(fmt.Errorf("%w: the plan %s runs %s on device %s: %w; this host has %s; start with "+
			"--device none to use the cores", plans.ErrForeignHost, s.Plan.Name, phaseList(phases), id, err,
			devrates.List(machine.ListDevices(ctx))))
	}
	return nil
}

// accelerate lets engines of the session run ops of phases on a device, nil: of those that it runs
// faster.
func (f *Flags) accelerate(s *session.Session, id string, dev device.Device, ops string, phases []phase.Phase,
	optional bool) {
	s.Accelerator = engine.DeviceOptions{Device: dev, Name: id, Phases: phases, Optional: optional,
		Rounding: f.deviceRounding, ExpertsOnCores: ops == plans.DenseOps,
		Memory: memoryOf(dev, &s.Shape, s.File.Size(), phases),
		Note:   func(text string) { show.Notice(fmt.Sprintf("%s: %s", id, text)) },
		Chose: func(t engine.DeviceTimes, phases []phase.Phase) {
			show.Notice(fmt.Sprintf("%s: measured %s; it runs %s", id, t, opsList(ops, phases)))
		},
		Refused: func(err error) { show.Notice(fmt.Sprintf("%s: %v", id, err)) },
		Lost:    func(err error) { show.Notice(fmt.Sprintf("%s: %v", id, err)) },
	}
}

// inexact reports whether the self-test of a device found classes that are not exact.
func inexact(d device.Device) bool { return d.Info().Exact != device.AllExact }

// findDevice opens the device that the flag names, or the first one that can be opened. It returns
// nil if auto finds none.
func (f *Flags) findDevice(ctx context.Context) (string, device.Device, error) {
	machine.UseCompiledKernels()
	if f.device != anyDevice {
		dev, err := device.Open(ctx, f.device)
		if err != nil {
			return "", nil, fmt.Errorf("--device %s: %w; this host has: %s", show.Clip(f.device, 40), err,
				devrates.List(machine.ListDevices(ctx)))
		}
		return f.device, dev, nil
	}
	for _, found := range device.List(ctx) {
		if found.Err != nil {
			continue
		}
		dev, err := device.Open(ctx, found.ID)
		switch {
		case err != nil:
		case inexact(dev) && !f.deviceRounding:
			show.Notice(fmt.Sprintf("--device auto: %s is not exact (%s); --device-rounding permits it", found.ID,
				device.AllExact&^dev.Info().Exact))
			_ = dev.Close() // its process ends with this one
		default:
			return found.ID, dev, nil
		}
	}
	return "", nil, nil
}

// opsList names the ops of phases that a device runs.
func opsList(ops string, list []phase.Phase) string {
	if ops == plans.DenseOps && len(list) > 0 {
		return phaseList(list) + " but for the experts"
	}
	return phaseList(list)
}

// phaseList names phases.
func phaseList(list []phase.Phase) string {
	if len(list) == 0 {
		return "neither phase"
	}
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return strings.Join(names, " and ")
}
