package modelflags

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/deviceforecast"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
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
	f.obeysPlacement, f.verb = true, c
	c.Flags().StringVar(&f.device, "device", anyDevice, "device for phases that it runs faster than the cores: none, "+
		"auto (the fastest by prediction, if it is exact), or an ID listed by 'sandwich doctor devices', such as "+
		"cuda:0; the placement of a plan precedes the default")
	c.Flags().StringVar(&f.devicePhases, "device-phases", "auto", "phases that run on the device of --device: auto "+
		"(those that it runs faster), prefill, decode or both")
	c.Flags().StringVar(&f.deviceOps, "device-ops", "auto", "ops of these phases that run on the device: all, dense "+
		"(all but the routing and the products of experts, which the cores compute), or auto (dense for a model with "+
		"experts, else all)")
	c.Flags().BoolVar(&f.deviceRounding, "device-rounding", false, "permit a device whose results differ by rounding "+
		"from those of the cores; if it is lost, requests that have started fail")
}

// AddDeviceDispatch adds the flags of how an engine uses the device of AddDevice. Verbs without an
// engine run one forward at a time and have no use for them.
func (f *Flags) AddDeviceDispatch(c *cobra.Command) {
	c.Flags().BoolVar(&f.deviceDivide, "device-divide", false, "let device and cores compute prompts "+
		"together where that is faster, if the device runs prefill and the cores decode")
	c.Flags().BoolVar(&f.deviceStatic, "device-static", false, "compile kernels for the rows of waiting prompts in "+
		"the background; prompts use those that are ready")
}

// AddVerbose adds the flag that explains why devices are not used, for verbs that have no other
// meaning of it.
func AddVerbose(c *cobra.Command) {
	c.Flags().BoolP("verbose", "v", false, "also print the devices that --device auto does not use, and why")
}

// deviceGiven reports whether a flag or a setting chooses the device, or phases or ops for it, so
// that the placement of a plan has no effect.
func (f *Flags) deviceGiven() bool {
	given := func(flag, value string) bool {
		return value != "" && value != "auto" || f.verb != nil && f.verb.Flags().Changed(flag)
	}
	return given("device", f.device) || given("device-phases", f.devicePhases) || given("device-ops", f.deviceOps)
}

// context returns the context of the verb, which ends when the user interrupts the program.
func (f *Flags) context() context.Context {
	if f.verb == nil || f.verb.Context() == nil {
		return context.Background()
	}
	return f.verb.Context()
}

// verbose reports whether the verb has --verbose and it is set.
func (f *Flags) verbose() bool {
	if f.verb == nil {
		return false
	}
	flag := f.verb.Flags().Lookup("verbose")
	return flag != nil && flag.Value.String() == "true"
}

// AddTuneDevice adds the flag of the device that tune measures.
func (f *Flags) AddTuneDevice(c *cobra.Command) {
	f.verb = c
	c.Flags().StringVar(&f.device, "device", anyDevice, "device to measure next to the cores: none, auto (the fastest "+
		"by its rates, if it is exact), or an ID listed by 'sandwich doctor devices'; the plan places phases on it "+
		"that it runs faster")
}

// OpenTuneDevice opens the device of AddTuneDevice, nil for none. The caller closes it.
func (f *Flags) OpenTuneDevice(ctx context.Context) (id string, dev device.Device, err error) {
	switch f.device {
	case "", noDevice:
		return "", nil, nil
	case anyDevice:
		id, dev = f.fastestDevice(ctx)
		return id, dev, nil
	}
	if dev, err = f.openNamed(ctx); err != nil {
		return "", nil, exit.Usage(err)
	}
	f.noteMeasuring(f.device, dev, rates.Usual()...)
	return f.device, dev, nil
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
	return nil, flags.Unknown("device-phases", f.devicePhases, "auto", "prefill", "decode", "both")
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

// checkDevice rejects flags of a device that are unknown or would have no effect.
func (f *Flags) checkDevice() error {
	phases, err := f.phases()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "auto", plans.AllOps, plans.DenseOps}, f.deviceOps) {
		return flags.Unknown("device-ops", f.deviceOps, "auto", plans.AllOps, plans.DenseOps)
	}
	for _, x := range []struct {
		flag  string
		set   bool
		needs string // what the device must run
		runs  bool   // the device runs that
	}{
		{"phases", phases != nil, "", true},
		{"ops", f.deviceOps != "" && f.deviceOps != "auto", "", true},
		{"rounding", f.deviceRounding, "", true},
		{"divide", f.deviceDivide, "prefill while the cores run decode", f.devicePhases != "both"},
		{"static", f.deviceStatic, "prefill", true},
	} {
		switch {
		case x.set && f.device == noDevice:
			return fmt.Errorf("--device-%s needs a device; leave out --device none", x.flag)
		case x.set && x.needs != "" && (!x.runs || f.devicePhases == "decode"):
			return fmt.Errorf("--device-%s needs a device that runs %s; give --device-phases prefill instead of %s",
				x.flag, x.needs, f.devicePhases)
		}
	}
	return nil
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
		f.note(fmt.Sprintf("note: the cores run %s: %v", deviceforecast.PhaseList(phases), err))
	default:
		return exit.Plan(fmt.Errorf("%w: the plan %s runs %s on device %s: %w; this host has %s; start with "+
			"--device none to use the cores", plans.ErrForeignHost, s.Plan.Name, deviceforecast.PhaseList(phases), id,
			err, devrates.List(machine.ListDevices(ctx))))
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
		Note:   func(text string) { f.note(fmt.Sprintf("%s: %s", id, text)) },
		Chose: func(t engine.DeviceTimes, phases []phase.Phase) {
			f.note(fmt.Sprintf("%s: measured %s; it runs %s", id, t, deviceforecast.OpsList(ops, phases)))
		},
		Refused: func(err error) { f.note(fmt.Sprintf("%s: %v; the cores run both phases", id, err)) },
		Lost:    func(err error) { f.note(fmt.Sprintf("%s: %v", id, err)) },
	}
}

// openNamed opens the device that the flag names.
func (f *Flags) openNamed(ctx context.Context) (device.Device, error) {
	machine.UseCompiledKernels()
	dev, err := device.Open(ctx, f.device)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w; this host has: %s", show.Clip(f.device, 40), err,
			devrates.List(machine.ListDevices(ctx)))
	}
	return dev, nil
}
