package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/occupancy"
)

// dataFolderText names the data folder in help texts and messages.
const dataFolderText = "the data folder"

// dataFolder returns the folder where tune writes plans and the other verbs look for them:
// $XDG_DATA_HOME/sandwich, else ~/.local/share/sandwich.
func dataFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sandwich"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("there is no data folder; set XDG_DATA_HOME or HOME")
	}
	return filepath.Join(home, ".local", "share", "sandwich"), nil
}

// asked returns the properties of the plan that the flags set.
func (f *sessionFlags) asked() *selection.Options {
	o := &selection.Options{Path: f.plan, ISA: f.isa, KV: f.kv, Compute: f.compute, Attend: f.attention,
		Threads: f.threads, TP: f.ranks}
	o.Build = programID()
	o.Folder, _ = dataFolder() // empty on error: plans are neither looked up nor stored
	if !f.firstPUs {
		o.Occupancy = puMonitor()
	}
	return o
}

// puMonitor returns the monitor of the PUs of this machine. The process has one, which holds its
// reservations.
var puMonitor = sync.OnceValue(func() occupancy.Monitor {
	data, _ := dataFolder()
	return occupancy.New(occupancy.Folders(data))
})

// choosePlan returns the plan to run under.
func (f *sessionFlags) choosePlan(host *profiles.Profile, shape plans.ModelShape) (*selection.Choice, error) {
	c, err := f.asked().Choose(host, shape)
	if refused := (*selection.BundleError)(nil); errors.As(err, &refused) {
		return nil, planError(refused.Err)
	}
	return c, usageError(err)
}

// untuned returns the default plan.
func (f *sessionFlags) untuned(host *profiles.Profile, shape plans.ModelShape) (*plans.Plan, error) {
	plan, _, err := f.asked().Untuned(host, shape)
	return plan, usageError(err)
}

// checkISA rejects an instruction set that is unknown or that this CPU lacks.
func (f *sessionFlags) checkISA(host *profiles.Profile) error { return f.asked().CheckISA(host) }

// oneKind rejects instruction sets of single workers, for verbs that measure one kind of worker.
func (f *sessionFlags) oneKind() error {
	isas, err := plans.ParseWorkerISAs(f.isa)
	if err == nil && len(isas.Of) > 0 {
		err = errors.New("this measures workers of one kind; give one instruction set")
	}
	if err != nil {
		return fmt.Errorf("--isa %s: %w", show.Clip(f.isa, 80), err)
	}
	return nil
}

// checkOn rejects flags without effect and flags that this host does not support.
func (f *sessionFlags) checkOn(host *profiles.Profile) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.checkISA(host); err != nil {
		return err
	}
	return f.asked().CheckThreads(host)
}

// planError gives a refusal of a plan its exit code and its remedy.
func planError(err error) error {
	code := plans.ExitCode(err)
	if code == exitFailed && errors.Is(err, os.ErrNotExist) {
		code = exitInput
	}
	switch {
	case err == nil:
		return nil
	case code == exitForeign:
		err = fmt.Errorf("%w; create a plan for this host and model with `sandwich tune`", err)
	case code == exitInput:
		err = fmt.Errorf("%w; copy it again, or create it again with `sandwich tune`", err)
	}
	return withCode(code, err)
}
