package modelflags

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/autodevice"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/deviceforecast"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/session"
)

// chooseDevice opens the device of --device and sets the plan of the session and the phases that
// the device runs. onCores is the plan of the cores alone.
func (f *Flags) chooseDevice(ctx context.Context, s *session.Session, onCores *selection.Choice) error {
	phases, err := f.phases()
	if err != nil {
		return exit.Usage(err)
	}
	ops, err := f.ops(s.Shape)
	if err != nil {
		return exit.Usage(err)
	}
	t := &target{flags: f, session: s, onCores: onCores}
	if f.device == anyDevice {
		return t.useFastest(ctx, ops, phases)
	}
	f.Loading.At("opening the device", 0)
	dev, err := f.openNamed(ctx)
	if err != nil {
		return exit.Usage(err)
	}
	id := f.device
	if err := t.choosePlan(); err != nil {
		_ = dev.Close() // its process ends with this one
		return exit.Usage(fmt.Errorf("--device %s: %w", show.Clip(f.device, 40), err))
	}
	if phases != nil {
		f.use(s, t.chosen)
		f.accelerate(s, id, dev, ops, phases, false)
		return nil
	}
	p, err := t.measure(ctx, id, dev)
	switch {
	case ctx.Err() != nil:
		_ = dev.Close()
		return context.Cause(ctx)
	case dev.Err() != nil:
		err := dev.Err()
		_ = dev.Close()
		return exit.With(exit.Failed, fmt.Errorf("%s: %w", id, err))
	case err != nil: // the engine measures forwards
		f.note(fmt.Sprintf("%s: no prediction: %v; a forward of each phase is measured", id, err))
		f.use(s, t.chosen)
		f.accelerate(s, id, dev, ops, nil, true)
	case len(p.Phases) == 0:
		f.note(fmt.Sprintf("%s: %s", id, p))
		_ = dev.Close()
		f.use(s, onCores)
	default:
		f.note(fmt.Sprintf("%s: %s", id, p))
		t.accelerate(id, dev, ops, p)
	}
	return nil
}

// auto returns the options of the choice of --device auto that do not depend on the model.
func (f *Flags) auto() autodevice.Options {
	return autodevice.Options{Rounding: f.deviceRounding, Failures: machine.DeviceFailures(),
		Opening: func() {
			f.Loading.At("opening the device", 0)
			machine.UseCompiledKernels()
		},
		Unused: func(id, why string) {
			// An ID without an index is a driver that found no device.
			if f.verbose() || f.deviceGiven() && strings.Contains(id, ":") {
				f.note(fmt.Sprintf("--device auto: %s is not used: %s", id, why))
			}
		},
		Failed: func(id string, err error) {
			f.note(fmt.Sprintf("--device auto: %s failed and is not used: %v", id, err))
		}}
}

// fastestDevice opens the device that tune measures for --device auto, nil: none. Equal models run
// the fastest on it by its rates, whatever the cores do.
func (f *Flags) fastestDevice(ctx context.Context) (id string, dev device.Device) {
	store, o := machine.DeviceRates(), f.auto()
	usual := rates.Usual()
	o.Stored = func(id string, info device.Info) *devrates.Device { return store.Known(id, info, usual...) }
	o.Measure = func(ctx context.Context, id string, d device.Device) (devrates.Device, error) {
		f.note(measuring(id, d))
		return store.Of(ctx, id, d, false, usual...)
	}
	o.Predict = func(_ string, r *devrates.Device) (autodevice.Prediction, error) {
		c := r.Class(usual[0].Class())
		if c == nil {
			return autodevice.Prediction{}, fmt.Errorf("it has no measured rate of class %q", usual[0].Class())
		}
		const weights = 1e9 // of a byte
		prompt, output := float64(deviceforecast.Reference.Prompt), float64(deviceforecast.Reference.Output)
		seconds := c.Seconds(2*weights*prompt, weights) + output*c.Seconds(2*weights, weights)
		return autodevice.Prediction{Uses: true, Takes: time.Duration(seconds * 1e9),
			Text: "its forwards are measured next to those of the cores"}, nil
	}
	c := autodevice.Choose(ctx, o)
	if c == nil {
		if f.deviceGiven() {
			f.note("--device auto: this host has no usable device")
		}
		return "", nil
	}
	f.note(fmt.Sprintf("%s: %s", c.ID, c.Text))
	return c.ID, c.Device
}

// measuring says that the rates of a device are measured.
func measuring(id string, d device.Device) string {
	return fmt.Sprintf("%s (%s): measuring its rates and those of the cores, a few seconds; they are stored", id,
		d.Info().Name)
}

// noteMeasuring says that the rates of a device will be measured, unless they are stored.
func (f *Flags) noteMeasuring(id string, d device.Device, products ...rates.Product) {
	if machine.DeviceRates().Known(id, d.Info(), products...) == nil {
		f.note(measuring(id, d))
	}
}

// target is a model for which a device is chosen.
type target struct {
	flags   *Flags
	session *session.Session
	onCores *selection.Choice // plan of the cores alone

	planned  bool                // choosePlan was called
	planErr  error               // its result
	chosen   *selection.Choice   // plan for a device
	plans    []*selection.Choice // chosen, and others that may replace it
	ops      *model.Model
	products []rates.Product // that the device computes under any of these plans
}

// choosePlan chooses the plan for a device. It fails if no device can run the model under a plan
// that the flags permit. Later calls return the result of the first.
func (t *target) choosePlan() error {
	if t.planned {
		return t.planErr
	}
	t.planned = true
	t.planErr = func() (err error) {
		if t.ops, err = arch.ModelOf(t.session.File); err != nil {
			return err
		}
		if err := offload.CheckModel(t.ops); err != nil {
			return err
		}
		if t.chosen, err = t.flags.planForDevice(t.session, t.onCores); err != nil {
			return err
		}
		t.plans = append(t.plans, t.chosen)
		if other := t.flags.integersForDevice(t.session, t.chosen); other != nil {
			t.plans = append(t.plans, other)
		}
		for _, c := range t.plans {
			list, err := offload.Products(t.ops, c.Plan)
			if err != nil {
				return err
			}
			t.products = append(t.products, list...)
		}
		return nil
	}()
	return t.planErr
}

// measure predicts by the rates of an open device, which it measures if they are not stored.
func (t *target) measure(ctx context.Context, id string, dev device.Device) (*deviceforecast.Prediction, error) {
	t.flags.Loading.At("measuring the device", 0)
	t.flags.noteMeasuring(id, dev, t.products...)
	measured, err := machine.DeviceRates().Of(ctx, id, dev, false, t.products...)
	if err != nil {
		return nil, err
	}
	return t.predict(ctx, &measured)
}

// predict chooses the phases of a device by its rates and the figures of the cores.
func (t *target) predict(ctx context.Context, measured *devrates.Device) (*deviceforecast.Prediction, error) {
	host, err := machine.DeviceRates().Cores(func(p *profiles.Profile) error {
		return machine.MeasureCeilings(ctx, p, calibrate.Options{})
	})
	if err != nil {
		return nil, err
	}
	return deviceforecast.Fastest(measured, host, t.ops, t.plans, t.onCores)
}

// useFastest sets the plan of the session, and the device with which a request is predicted to be
// the fastest, if that is faster than the cores alone. phases are those that the device runs, nil:
// those that it runs faster. The error is that of the context.
func (t *target) useFastest(ctx context.Context, ops string, phases []phase.Phase) error {
	f, store, o := t.flags, machine.DeviceRates(), t.flags.auto()
	predictions := map[string]*deviceforecast.Prediction{}
	o.Reject = t.reject
	o.Stored = func(id string, info device.Info) *devrates.Device { return store.Known(id, info, t.products...) }
	o.Measure = func(ctx context.Context, id string, d device.Device) (devrates.Device, error) {
		f.Loading.At("measuring the device", 0)
		f.note(measuring(id, d))
		return store.Of(ctx, id, d, false, t.products...)
	}
	o.Predict = func(id string, r *devrates.Device) (autodevice.Prediction, error) {
		p, err := t.predict(ctx, r)
		switch {
		case err != nil && f.deviceGiven(): // the engine measures forwards
			return autodevice.Prediction{Uses: true, Takes: math.MaxInt64,
				Text: fmt.Sprintf("no prediction: %v; a forward of each phase is measured", err)}, nil
		case err != nil:
			return autodevice.Prediction{}, err
		}
		predictions[id] = p
		return autodevice.Prediction{Uses: len(p.Phases) > 0 || phases != nil, Takes: p.Takes(phases),
			Text: p.String()}, nil
	}
	c := autodevice.Choose(ctx, o)
	if ctx.Err() != nil {
		if c != nil {
			_ = c.Device.Close()
		}
		return context.Cause(ctx)
	}
	if c == nil {
		if f.deviceGiven() {
			f.note("--device auto: no device is used; the cores run both phases")
		}
		f.use(t.session, t.onCores)
		return nil
	}
	f.note(fmt.Sprintf("%s: %s", c.ID, c.Text))
	p := predictions[c.ID]
	switch {
	case phases != nil:
		f.use(t.session, t.chosen)
		f.accelerate(t.session, c.ID, c.Device, ops, phases, true)
	case p == nil:
		f.use(t.session, t.chosen)
		f.accelerate(t.session, c.ID, c.Device, ops, nil, true)
	default:
		t.accelerate(c.ID, c.Device, ops, p)
	}
	t.orCores(c.ID)
	return nil
}

// reject returns why --device auto does not consider a device, or "".
func (t *target) reject(info device.Info) string {
	if err := t.choosePlan(); err != nil {
		return err.Error()
	}
	b := t.onCores.Bundle
	if t.flags.deviceGiven() || b == nil {
		return ""
	}
	for _, d := range b.Host.Devices {
		if d.Name == info.Name && d.Driver == info.Driver && b.Evidence.Raced(plans.DeviceArm(d.ID)) {
			return "the plan " + b.Plan.Name + " was tuned with it, and the cores were faster"
		}
	}
	return ""
}

// accelerate uses a device for the phases that were predicted, under the plan of the prediction.
func (t *target) accelerate(id string, dev device.Device, ops string, p *deviceforecast.Prediction) {
	if p.Plan != t.chosen {
		show.Notice(fmt.Sprintf("%s: weights use path %s, with which the device is predicted to be faster", id,
			microkernel.ComputeInt8K))
	}
	t.chosen = p.Plan
	t.flags.use(t.session, t.chosen)
	t.flags.accelerate(t.session, id, dev, ops, p.Phases, true)
	t.session.Accelerator.Check = p.Cheap()
}

// orCores lets the session use the plan of the cores if the engine does not use the device, and
// remembers a device whose kernels compute other results.
func (t *target) orCores(id string) {
	if t.chosen != t.onCores {
		t.session.WithoutDevice = func() { t.flags.use(t.session, t.onCores) }
	}
	on, failures := &t.session.Accelerator, machine.DeviceFailures()
	refused := on.Refused
	on.Refused = func(err error) {
		failures.Add(id, err)
		refused(err)
	}
}

// integersForDevice returns a default plan for a device whose weights use path int8-k where device
// kernels support it. It returns nil if that plan equals the chosen one, if the user chose a plan,
// its paths or the phases of the device, if the plan was tuned, and for models with experts, whose
// paths are those of the cores.
func (f *Flags) integersForDevice(s *session.Session, chosen *selection.Choice) *selection.Choice {
	phases, _ := f.phases()
	free := f.Compute == "auto" && f.plan == "" && chosen.Bundle == nil && phases == nil
	if !free || s.Shape.DeviceOps() != plans.AllOps {
		return nil
	}
	asked := f.askedForDevice()
	asked.Compute = microkernel.ComputeInt8K.String()
	c, err := choosePlan(asked, s.Profile, s.Shape)
	if err != nil || c.Plan.DeviceKernels() != nil || slices.Equal(c.Plan.Weights, chosen.Plan.Weights) {
		return nil // such as a model without weights in blocks of 256
	}
	return c
}

// planForDevice returns a plan that a device can run: that of the cores if it can, else the default
// plan on paths that both implement, unless the user names the plan. Experts keep the fastest paths
// of the cores.
func (f *Flags) planForDevice(s *session.Session, onCores *selection.Choice) (*selection.Choice, error) {
	err := onCores.Plan.DeviceKernels()
	if err == nil {
		return onCores, nil
	}
	if f.plan != "" {
		return nil, fmt.Errorf("the plan %s: %w", onCores.Plan.Name, err)
	}
	c, err := choosePlan(f.askedForDevice(), s.Profile, s.Shape)
	if err != nil {
		return nil, err
	}
	return c, c.Plan.DeviceKernels()
}
