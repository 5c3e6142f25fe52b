package check

import (
	"errors"
	"fmt"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/profiles"
)

// Judgement is the result of Verify.
type Judgement string

// Judgements, best first.
const (
	Optimal    Judgement = "OPTIMAL"    // tuned on this host with these settings
	Suboptimal Judgement = "SUBOPTIMAL" // runs, but settings cost speed or the plan was not tuned
	Retune     Judgement = "RETUNE"     // runs, but the host has changed since tuning
	Invalid    Judgement = "INVALID"    // must not run
)

// Verdict is the result of Verify with its reasons.
type Verdict struct {
	Judgement Judgement `json:"verdict"`
	Reasons   []string  `json:"reasons"`            // one sentence each; empty when optimal
	Rounding  string    `json:"rounding,omitempty"` // why the plan is not exact; "" if it is
	// differences from the plan's host; nil if no host was given
	Keys []KeyChange `json:"keys,omitempty"`
	Err  error       `json:"-"` // the error of an INVALID plan
}

// ExitCode returns the exit code of `plan verify`: 0 for OPTIMAL and SUBOPTIMAL, 1 for RETUNE, and
// for INVALID 2 if the plan is damaged and 4 if it does not fit.
func (v Verdict) ExitCode() int {
	switch v.Judgement {
	case Retune:
		return 1
	case Invalid:
		return plans.ExitCode(v.Err)
	}
	return 0
}

// VerifyDir reads and verifies the bundle at dir. A damaged bundle gives INVALID; the error reports
// a path that does not exist or cannot be opened.
func VerifyDir(dir string, host *profiles.Profile, shape *plans.ModelShape) (Verdict, *bundle.Bundle, error) {
	b, err := bundle.Read(dir)
	switch {
	case errors.Is(err, plans.ErrDamaged):
		return Verdict{Judgement: Invalid, Reasons: []string{err.Error()}, Err: err}, nil, nil
	case err != nil:
		return Verdict{}, nil, err
	}
	return Verify(b, host, shape), b, nil
}

// Verify judges a bundle against a host and a model without reading weights. host or shape may be
// nil. It compares identities, settings, and the ceilings that both profiles measured.
func Verify(b *bundle.Bundle, host *profiles.Profile, shape *plans.ModelShape) Verdict {
	var keys []KeyChange
	if host != nil {
		keys = KeyChanges(&b.Host, host)
	}
	if err := Bundle(b, host, shape); err != nil {
		return Verdict{Judgement: Invalid, Reasons: []string{err.Error()}, Keys: keys, Err: err}
	}
	var retune, sub []string
	if !b.Plan.Tuned {
		sub = append(sub, "the plan was not tuned; it is the default plan")
	}
	if host != nil {
		retune = append(retune, drift(&b.Plan, &b.Host, host)...)
		retune = append(retune, ceilingDrift(&b.Host, host)...)
		sub = append(sub, settingDrift(b.Host.Host, host.Host)...)
		changed, slower := deviceDrift(b, host)
		retune, sub = append(retune, changed...), append(sub, slower...)
		for _, c := range b.Plan.Classes {
			if why := c.Lacks(host.Features(), host.Machine); why != "" {
				sub = append(sub, fmt.Sprintf("workers of class %s run as %s ones: %s", c.Name, plans.MainClass, why))
			}
		}
	}
	v := Verdict{Judgement: Optimal, Reasons: []string{}, Rounding: b.Rounding(), Keys: keys}
	switch {
	case len(retune) > 0:
		v.Judgement, v.Reasons = Retune, append(retune, sub...)
	case len(sub) > 0:
		v.Judgement, v.Reasons = Suboptimal, sub
	}
	return v
}

// drift describes changes in what the tuner could choose from: the usable PUs, and instructions
// that the plan's host lacked.
func drift(p *plans.Plan, made, here *profiles.Profile) []string {
	var out []string
	if a, b := made.UsablePUs(), here.UsablePUs(); !a.Equal(b) {
		out = append(out, fmt.Sprintf("the plan was tuned with the PUs %s available, but this process may "+
			"use %s", a, b))
	}
	if gained := plans.MissingFeatures(here.Features(), made.Features()); here.Features()&^made.Features() != 0 {
		out = append(out, fmt.Sprintf("this host has %s, which the plan's host lacked", strings.Join(gained, ", ")))
	}
	return out
}

// deviceDrift describes changes of the plan's device: another device has its ID, or the host lacks
// it and the cores take its place.
func deviceDrift(b *bundle.Bundle, here *profiles.Profile) (retune, sub []string) {
	id, _, _ := b.Plan.Device()
	if id == "" || here.Devices == nil {
		return nil, nil
	}
	was, is := b.Host.Device(id), here.Device(id)
	switch {
	case is == nil:
		sub = append(sub, fmt.Sprintf("this host lacks device %s (it has %s), so the cores run its phases", id,
			here.DeviceText()))
	case was == nil:
	case was.Name != is.Name:
		retune = append(retune, fmt.Sprintf("device %s was %q and is %q", id, message.Clip(was.Name, 60),
			message.Clip(is.Name, 60)))
	case was.Driver != is.Driver:
		sub = append(sub, fmt.Sprintf("the driver of device %s was %q and is %q", id, message.Clip(was.Driver, 60),
			message.Clip(is.Driver, 60)))
	}
	return retune, sub
}

// driftLimit is the relative change of a measured ceiling, in addition to its noise, above which a
// plan should be tuned again.
const driftLimit = 0.15

// ceilingPair is a ceiling that both profiles measured with significantly different values.
type ceilingPair struct{ made, here profiles.Ceiling }

func (c ceilingPair) name() string {
	return fmt.Sprintf("%s %s with %d PUs", c.made.Kind, c.made.Name(), c.made.PUs)
}

func (c ceilingPair) change() float64 { return c.here.Median/c.made.Median - 1 }

// ceilingPairs returns the ceilings that differ between two profiles. Slower and faster both count:
// either moves the ridge between the regimes.
func ceilingPairs(made, here *profiles.Profile) (out []ceilingPair) {
	for _, a := range made.Ceilings {
		for _, b := range here.Ceilings {
			same := a.Kind == b.Kind && a.Device == b.Device && a.ISA == b.ISA && a.Type == b.Type &&
				a.Level == b.Level && a.PUs == b.PUs && a.CPUs.Equal(b.CPUs)
			if !same || !a.Measured() || !b.Measured() || a.Median == 0 {
				continue
			}
			c := ceilingPair{a, b}
			if change := c.change(); max(change, -change) > driftLimit+a.Noise+b.Noise {
				out = append(out, c)
			}
		}
	}
	return out
}

func ceilingDrift(made, here *profiles.Profile) (out []string) {
	for _, c := range ceilingPairs(made, here) {
		out = append(out, fmt.Sprintf("%s is %+.0f %% from the value measured when the plan was tuned", c.name(),
			c.change()*100))
	}
	return out
}

// setting is an operating system setting that differs.
type setting struct{ key, name, was, is string }

// settings returns the settings that are known on both hosts and differ.
func settings(made, here profiles.Identity) (out []setting) {
	for _, f := range []setting{
		{"kernel", "kernel", made.Kernel, here.Kernel}, {"microcode", "microcode", made.Microcode, here.Microcode},
		{"numa_balancing", "NUMA balancing", made.NUMABalancing, here.NUMABalancing},
		{"thp", "transparent huge pages", made.THP, here.THP},
		{"governor", "CPU frequency governor", made.Governor, here.Governor},
	} {
		if f.was != f.is && f.was != "" && f.is != "" {
			out = append(out, f)
		}
	}
	return out
}

func settingDrift(made, here profiles.Identity) (out []string) {
	for _, f := range settings(made, here) {
		out = append(out, fmt.Sprintf("%s was %q and is %q", f.name, message.Clip(f.was, 60), message.Clip(f.is, 60)))
	}
	return out
}
