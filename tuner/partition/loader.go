package partition

import (
	"context"
	"errors"
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/tuner/race"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// Loader makes and opens the partitions of one run. It keeps the default plan's partition open, and
// at most one other. One goroutine uses it.
type Loader struct {
	run     *run.Run
	subject *Subject
	shape   plans.ModelShape
	random  *gguf.File // weights without a file; a part of the model if part is set
	part    string
	home    *Partition // of the default plan
	other   *Partition // the second open partition, or nil
}

// NewLoader returns a loader with the default plan's partition, which is not open yet.
func NewLoader(r *run.Run, s *Subject, shape plans.ModelShape) (l *Loader, err error) {
	l = &Loader{run: r, subject: s, shape: shape}
	l.home, err = New(s, shape, nil)
	return l, err
}

// Home returns the default plan's partition.
func (l *Loader) Home() *Partition { return l.home }

// Part names the part of the model that the forwards run, such as "4 of 32 layers", or returns ""
// if they run all of it. l may be nil.
func (l *Loader) Part() string {
	if l == nil {
		return ""
	}
	return l.part
}

// Partition returns another partition.
func (l *Loader) Partition(cut *plans.ServiceConfig) (*Partition, error) {
	p, err := New(l.subject, l.shape, cut)
	if err == nil {
		p.Name = p.describe()
	}
	return p, err
}

// OnDevice returns a partition that a device can run: the default plan's if it can, else one whose
// weights and attention use paths that devices and cores have in common. Experts keep the paths of
// the default plan.
func (l *Loader) OnDevice() (*Partition, error) {
	if l.home.Plan.DeviceKernels() == nil {
		return l.home, nil
	}
	s := *l.subject
	if s.Plan.Attend == "" || s.Plan.Attend == "auto" {
		s.Plan.Attend = "f32"
	}
	if s.Plan.Compute == "" || s.Plan.Compute == "auto" {
		s.Plan.Device = true
	}
	p, err := New(&s, l.shape, nil)
	if err == nil {
		err = p.Plan.DeviceKernels()
	}
	if err != nil {
		return nil, err
	}
	p.Name = "paths of devices"
	return p, nil
}

// Open starts the workers of a partition and loads the model. It closes any open partition other
// than the default plan's. The error is a *race.Absent if the partition cannot be open together
// with the default plan's.
func (l *Loader) Open(ctx context.Context, p *Partition) error {
	if p.Opened() || p.Failed != nil {
		return p.Failed
	}
	if p != l.home {
		if l.other != nil {
			l.other.Shut()
		}
		l.other = p
	}
	if err := l.ready(ctx, p); err != nil {
		p.Shut()
		if l.other == p {
			l.other = nil
		}
		p.Failed = err
		return err
	}
	return nil
}

// Close closes the open partitions.
func (l *Loader) Close() {
	for _, p := range []*Partition{l.other, l.home} {
		if p != nil {
			p.Shut()
		}
	}
	l.other = nil
}

// ready starts the workers and loads the model.
func (l *Loader) ready(ctx context.Context, p *Partition) error {
	if p != l.home {
		if err := checkMemory(p); err != nil {
			return err
		}
	}
	if err := p.Start(p.Usable()); err != nil {
		return err
	}
	return l.load(ctx, p)
}

// checkMemory returns an error if the weights do not fit in memory together with those of the
// default plan.
func checkMemory(p *Partition) error {
	list, err := exec.ForecastMemory(p.rigSize().Options(p.Plan))
	if err != nil {
		return err
	}
	need := int64(0)
	for _, f := range list {
		need += f.Total(1)
	}
	if free := mem.Available(); free >= 0 && need > free {
		return &race.Absent{Why: fmt.Sprintf("it needs %s in addition to the default plan, and %s is free",
			mem.FormatBytes(need), mem.FormatBytes(free))}
	}
	return nil
}

// DeviceBytes returns the memory of the packed weights that a device needs: all but those of
// experts.
func (p *Partition) DeviceBytes() (total int64, err error) {
	list, err := exec.ForecastMemory(p.rigSize().Options(p.Plan))
	for _, f := range list {
		total += f.Weights
	}
	for _, w := range p.Plan.Model.Weights {
		if err != nil || !p.Plan.Model.Routed(w) {
			continue
		}
		var t microkernel.WeightType
		t, err = microkernel.ParseWeightType(w.Type)
		total -= int64(w.Count) * int64(microkernel.Layout{Type: t, N: w.N, K: w.K}.Bytes())
	}
	return total, err
}

// load loads the model, or random weights of its shapes, into the rig. A model that does not fit in
// memory is tuned without finalists. A model that is not loaded when the budget ends is not tuned.
func (l *Loader) load(ctx context.Context, p *Partition) error {
	l.run.Say("loading", "the weights of "+l.shape.Name, true)
	within, cancel := context.WithTimeoutCause(ctx, max(1, l.run.Until(run.FinalsEnd)), run.ErrNoTime)
	defer cancel()
	file, err := l.weights(within, p.randomBytes(l.run.Budget))
	if err == nil {
		p.Rig, err = rig.Open(within, p.Workers, file, p.Plan, p.rigSize(), l.run.Seed)
	}
	if err != nil {
		return l.withoutRig(ctx, p, err)
	}
	return nil
}

// weights returns the model's weights, or random weights of its shapes.
func (l *Loader) weights(ctx context.Context, limit int64) (*gguf.File, error) {
	if l.subject.File != nil {
		return l.subject.File, nil
	}
	if l.random == nil {
		var err error
		if l.random, l.part, err = rig.RandomModel(ctx, *l.subject.Config, l.subject.Type, limit,
			l.run.Seed); err != nil {
			return nil, err
		}
	}
	return l.random, nil
}

// withoutRig continues without whole forwards if the model cannot run but can be tuned by shape.
func (l *Loader) withoutRig(ctx context.Context, p *Partition, err error) error {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case p != l.home:
		return &race.Absent{Why: "its weights could not be loaded in addition to those of the default plan: " +
			err.Error()}
	case errors.Is(err, run.ErrNoTime):
		l.run.Reject("finalists", "the budget was over while the model was loaded; give a larger --budget")
		return err
	case l.subject.File != nil:
		return err
	}
	l.run.Reject("finalists", "whole forwards cannot be measured: "+err.Error())
	return nil
}
