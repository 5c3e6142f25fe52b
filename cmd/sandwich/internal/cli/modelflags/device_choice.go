package modelflags

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
	"sandwich/runtime/engine"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/placement"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/llm"
)

// reference is the request for which a placement is chosen, that of the tests of a plan.
var reference = placement.Load{Requests: 1, Prompt: 512, Output: 64}

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
	f.Loading.At("opening the device", 0)
	id, dev, err := f.findDevice(ctx)
	if err != nil {
		return exit.Usage(err)
	}
	if dev == nil {
		show.Notice("--device auto: this host has no usable device; the cores run both phases")
		f.use(s, onCores)
		return nil
	}
	chosen, err := f.planForDevice(s, onCores)
	if err != nil {
		_ = dev.Close() // its process ends with this one
		if f.device != anyDevice {
			return exit.Usage(fmt.Errorf("--device %s: %w", show.Clip(f.device, 40), err))
		}
		show.Notice(fmt.Sprintf("%s: %v; the cores run both phases", id, err))
		f.use(s, onCores)
		return nil
	}
	if phases != nil {
		f.use(s, chosen)
		f.accelerate(s, id, dev, ops, phases, f.device == anyDevice)
		return nil
	}
	p, err := f.predict(ctx, s, id, dev, chosen, onCores)
	switch {
	case dev.Err() != nil:
		err := dev.Err()
		_ = dev.Close()
		if f.device != anyDevice {
			return exit.With(exit.Failed, fmt.Errorf("%s: %w", id, err))
		}
		show.Notice(fmt.Sprintf("%s: %v; the cores run both phases", id, err))
		f.use(s, onCores)
	case err != nil: // the engine measures forwards
		show.Notice(fmt.Sprintf("%s: no prediction: %v; a forward of each phase is measured", id, err))
		f.use(s, chosen)
		f.accelerate(s, id, dev, ops, nil, true)
	case len(p.phases) == 0:
		show.Notice(fmt.Sprintf("%s: %s", id, p))
		_ = dev.Close()
		f.use(s, onCores)
	default:
		show.Notice(fmt.Sprintf("%s: %s", id, p))
		f.use(s, chosen)
		f.accelerate(s, id, dev, ops, p.phases, true)
		s.Accelerator.Check = p.cheap()
	}
	return nil
}

// planForDevice returns a plan that a device can run: that of the cores if it can, else the default
// plan on paths that both implement, unless the user names the plan. Experts keep the fastest paths
// of the cores if the device has kernels for those of the other weights.
func (f *Flags) planForDevice(s *session.Session, onCores *selection.Choice) (*selection.Choice, error) {
	err := onCores.Plan.DeviceKernels()
	if err == nil {
		return onCores, nil
	}
	if f.plan != "" {
		return nil, fmt.Errorf("the plan %s: %w", onCores.Plan.Name, err)
	}
	asked := f.askedForDevice()
	if s.Shape.DeviceOps() == plans.DenseOps {
		free := *asked
		free.Compute = f.Compute
		if c, err := choosePlan(&free, s.Profile, s.Shape); err == nil && c.Plan.DeviceKernels() == nil {
			return c, nil
		}
	}
	c, err := choosePlan(asked, s.Profile, s.Shape)
	if err != nil {
		return nil, err
	}
	return c, c.Plan.DeviceKernels()
}

// prediction is the predicted choice of a placement.
type prediction struct {
	cores, device placement.Side
	ops           string // that run on the device
	chunk         int
	phases        []phase.Phase // that run on the device
	alone, best   time.Duration // of the reference request, on the cores and as chosen
}

// String describes the prediction.
func (p *prediction) String() string {
	rate := func(l placement.Line, rows int) float64 { return float64(rows) / l.Of(rows).Seconds() }
	return fmt.Sprintf("predicted prefill %.1f tokens/s on the device and %.1f on the cores, decode %.1f and %.1f; "+
		"it runs %s", rate(p.device[phase.Prefill], p.chunk), rate(p.cores[phase.Prefill], p.chunk),
		rate(p.device[phase.Decode], 1), rate(p.cores[phase.Decode], 1), opsList(p.ops, p.phases))
}

// checkLimit is the predicted time of the forwards of a check of the prediction up to which the
// check is made.
const checkLimit = 300 * time.Millisecond

// cheap reports whether measuring forwards of both phases on both sides takes little time.
func (p *prediction) cheap() bool {
	var sum time.Duration
	for _, side := range []placement.Side{p.cores, p.device} {
		sum += side[phase.Prefill].Of(engine.MeasuredRows) + side[phase.Decode].Of(1)
	}
	return sum <= checkLimit
}

// predict chooses the phases of a device under a plan by the device's rates and the figures of the
// cores. The cores alone run onCores, whose paths may be faster.
func (f *Flags) predict(ctx context.Context, s *session.Session, id string, dev device.Device,
	chosen, onCores *selection.Choice) (*prediction, error) {
	ops, err := arch.ModelOf(s.File)
	if err != nil {
		return nil, err
	}
	products, err := offload.Products(ops, chosen.Plan)
	if err != nil {
		return nil, err
	}
	store := machine.DeviceRates()
	f.Loading.At("measuring the device", 0)
	rates, err := store.Of(ctx, id, dev, false, products...)
	if err != nil {
		return nil, err
	}
	host, err := store.Cores(func(p *profiles.Profile) error {
		return machine.MeasureCeilings(ctx, p, calibrate.Options{})
	})
	if err != nil {
		return nil, err
	}
	return predicted(&rates, host, ops, chosen, onCores)
}

// predicted chooses the phases; see predict.
func predicted(rates *devrates.Device, host *profiles.Profile, ops *model.Model, chosen,
	onCores *selection.Choice) (*prediction, error) {
	forecast, err := offload.NewForecast(rates, ops, chosen.Plan)
	if err != nil {
		return nil, err
	}
	var sides [2]placement.Side
	for i, c := range []*selection.Choice{chosen, onCores} {
		if sides[i], err = CoresSide(host, ops, c); err != nil {
			return nil, err
		}
	}
	load := reference
	load.Chunk = chosen.Plan.Chunk
	r := placement.Rates{Cores: sides[0], Device: forecast.Side()}
	r.ToCores, r.ToDevice = forecast.Copies()
	onDevice := chosen.Plan.Model.DeviceOps()
	if r.Shared = onDevice == plans.DenseOps; r.Shared {
		if err := addExperts(&r.Device, sides[0], host, ops, chosen.Plan); err != nil {
			return nil, err
		}
	}
	best := placement.Choose(load, r)[0]
	load.Chunk = onCores.Plan.Chunk
	alone := placement.Choose(load, placement.Rates{Cores: sides[1], Device: sides[1]})[0]
	p := &prediction{cores: sides[1], device: r.Device, chunk: min(chosen.Plan.Chunk, reference.Prompt),
		ops: onDevice, phases: best.Device, alone: alone.Latency, best: best.Latency}
	if p.alone <= p.best { // also if the plan for the device has slower paths on the cores
		p.phases = nil
	}
	return p, nil
}

// addExperts adds the time of the experts to the forwards on a device: the share of the forwards on
// the cores that their ceilings give.
func addExperts(device *placement.Side, cores placement.Side, host *profiles.Profile, ops *model.Model,
	p *plans.Plan) error {
	for of, test := range referenceTests() {
		share, err := llm.ExpertsShare(host, ops, p, test)
		if err != nil {
			return fmt.Errorf("rates of the cores: %w", err)
		}
		device[of] = device[of].Plus(cores[of], share)
	}
	return nil
}

// referenceTests returns the tests of the reference request by phase.
func referenceTests() []llm.Test {
	return llm.Tests([]int{reference.Prompt}, []int{reference.Output}, nil, 1)
}

// ceilingShare is the share of its ceilings that an untuned plan is assumed to reach on the cores.
const ceilingShare = 0.7

// CoresSide returns the times of forwards on the cores: those that were measured when the plan was
// tuned, else those of the ceilings.
func CoresSide(host *profiles.Profile, ops *model.Model, c *selection.Choice) (s placement.Side, err error) {
	tests := referenceTests()
	var rate [phase.Count]float64
	for i, p := range phase.All {
		if c.Bundle != nil {
			rate[p] = tunedRate(&c.Bundle.Evidence, p)
		}
		if rate[p] > 0 {
			continue
		}
		most, _, err := llm.AtMost(host, ops, c.Plan, tests[i])
		if err != nil {
			return s, fmt.Errorf("rates of the cores: %w", err)
		}
		rate[p] = ceilingShare * most
	}
	if min(rate[phase.Prefill], rate[phase.Decode]) <= 0 {
		return s, errors.New("rates of the cores are 0")
	}
	s[phase.Prefill].Row = 1e9 / rate[phase.Prefill]
	s[phase.Decode].Fixed = time.Duration(1e9 / rate[phase.Decode])
	return s, nil
}

// tunedRate returns the median rate of the best arm of the cores in the race of a phase: in the
// longest prompt, or in decode steps of one sequence. It returns 0 if there is none, or if the race
// ran a part of the model.
func tunedRate(e *evidence.Evidence, p phase.Phase) (rate float64) {
	places, _ := e.Places(p.String())
	i := slices.IndexFunc(places, func(x evidence.Place) bool { return !plans.IsDeviceArm(x.Arm) })
	if i < 0 {
		return 0
	}
	most := 0
	for _, a := range places[i].Tests {
		var n int
		switch {
		case len(a.Samples) == 0 || strings.Contains(a.Test, ","):
			continue
		case p == phase.Decode:
			if a.Test != "tg batch 1" && !strings.HasPrefix(a.Test, "tg64") {
				continue
			}
			n = 1
		default:
			if _, err := fmt.Sscanf(a.Test, "pp%d", &n); err != nil {
				continue
			}
		}
		if n > most {
			most, rate = n, num.Median(a.Samples)
		}
	}
	return rate
}
