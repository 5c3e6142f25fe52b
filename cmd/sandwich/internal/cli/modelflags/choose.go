package modelflags

import (
	"errors"
	"fmt"
	"sync"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/profiles/occupancy"
)

// dataFolderText names the data folder in help texts and messages.
const dataFolderText = "the data folder"

// asked returns the properties of the plan that the flags set.
func (f *Flags) asked() *selection.Options {
	o := &selection.Options{Path: f.plan, ISA: f.ISA, KV: f.KV, Compute: f.Compute, Attend: f.Attention,
		Threads: f.Threads, TP: f.Ranks}
	o.AnyPlacement = f.deviceGiven() || !f.obeysPlacement
	o.Devices = func() []devrates.Device { return machine.ListDevices(f.context()) }
	o.Build = build.ID()
	o.Folder, _ = datafolder.Path() // empty on error: plans are neither looked up nor stored
	o.Find = f.Plans.find()
	if !f.FirstPUs {
		o.Occupancy = puMonitor()
	}
	return o
}

// askedForDevice returns the properties of a default plan that a device can run.
func (f *Flags) askedForDevice() *selection.Options {
	o := f.asked()
	if o.Attend == "auto" {
		o.Attend = "f32"
	}
	if o.Compute == "auto" {
		o.Device = true
	}
	return o
}

// puMonitor returns the monitor of the PUs of this machine. The process has one, which holds its
// reservations.
var puMonitor = sync.OnceValue(func() occupancy.Monitor {
	data, _ := datafolder.Path()
	return occupancy.New(occupancy.Folders(data))
})

// choosePlan returns the plan to run under.
func choosePlan(o *selection.Options, host *profiles.Profile, shape plans.ModelShape) (*selection.Choice, error) {
	c, err := o.Choose(host, shape)
	if refused := (*selection.BundleError)(nil); errors.As(err, &refused) {
		return nil, exit.Plan(refused.Err)
	}
	return c, exit.Usage(err)
}

// Untuned returns the default plan for the cores alone.
func (f *Flags) Untuned(host *profiles.Profile, shape plans.ModelShape) (*plans.Plan, error) {
	plan, _, err := f.asked().Untuned(host, shape)
	return plan, exit.Usage(err)
}

// CheckISA rejects an instruction set that is unknown or that this CPU lacks.
func (f *Flags) CheckISA(host *profiles.Profile) error { return f.asked().CheckISA(host) }

// OneKind rejects instruction sets of single workers, for verbs that measure one kind of worker.
func (f *Flags) OneKind() error {
	isas, err := plans.ParseWorkerISAs(f.ISA)
	if err == nil && len(isas.Of) > 0 {
		err = errors.New("this measures workers of one kind; give one instruction set")
	}
	if err != nil {
		return fmt.Errorf("--isa %s: %w", show.Clip(f.ISA, 80), err)
	}
	return nil
}

// CheckOn rejects flags without effect and flags that this host does not support.
func (f *Flags) CheckOn(host *profiles.Profile) error {
	if err := f.Check(); err != nil {
		return err
	}
	if err := f.CheckISA(host); err != nil {
		return err
	}
	return f.asked().CheckThreads(host)
}
