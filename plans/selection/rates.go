package selection

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/profiles/retention"
)

// rated returns the host with the rates of a core that default plans need for tiles, for the path
// of bf16 weights and, where the caller asks, for attention, and with no other ceiling. They are
// measured once per build, in some 100 ms, and stored in the folder: a rate near a threshold must
// not change the plan, or the bits, of a model from start to start. Rates that the file lacks are
// measured and added. Without a folder they are measured each time.
func (o *Options) rated(host *profiles.Profile, attention bool) (*profiles.Profile, error) {
	p := *host
	p.Ceilings = nil
	isa := host.Features().Best()
	path := o.ratesPath(host)
	if kept, err := profiles.Load(path); err == nil && kept.Fingerprint() == host.Fingerprint() {
		p.Ceilings = kept.Ceilings
		if heuristic.RatesKnown(kept, isa) && (!attention || heuristic.AttentionKnown(kept, isa, o.heuristic())) {
			return &p, nil
		}
	}
	types := append([]string{microkernel.ComputeF32.String(), microkernel.ComputeInt8.String(),
		microkernel.ComputeBF16.String()}, microkernel.Int8Types()...)
	measure := o.measure
	if measure == nil {
		measure = calibrate.Rates
	}
	measured, err := measure(context.Background(), host, isa, types...)
	p.Ceilings = added(p.Ceilings, measured)
	if err == nil && path != "" {
		_ = o.keepRates(host, &p) // where this fails the next start measures again
	}
	return &p, err
}

// added is what is kept and, of what was measured, what is not.
func added(kept, measured []profiles.Ceiling) []profiles.Ceiling {
	all := slices.Clone(kept)
	for _, c := range measured {
		if !slices.ContainsFunc(kept, func(k profiles.Ceiling) bool { return k.Name() == c.Name() && k.PUs == c.PUs }) {
			all = append(all, c)
		}
	}
	return all
}

// Rates are kept in one file for each host and build, for retention.Builds of a host.
const (
	ratesPrefix = "rates-"
	ratesSuffix = ".yaml"
)

// ratesStem is what the names of a host's rates begin with; "" where there is no folder.
func (o *Options) ratesStem(host *profiles.Profile) string {
	if o.Folder == "" {
		return ""
	}
	return filepath.Join(o.Folder, ratesPrefix+strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16])
}

// ratesPath is where this build's rates of a host are kept; "" where there is no folder.
func (o *Options) ratesPath(host *profiles.Profile) string {
	stem := o.ratesStem(host)
	switch {
	case stem == "":
		return ""
	case o.Build == "":
		return stem + ratesSuffix
	}
	return stem + "-" + o.Build + ratesSuffix
}

// keepRates writes this build's rates of a host, and lets go of those of builds long gone.
func (o *Options) keepRates(host, rates *profiles.Profile) error {
	path := o.ratesPath(host)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := rates.Save(path); err != nil {
		return err
	}
	return retention.Newest(path, filepath.Base(o.ratesStem(host)), ratesSuffix)
}
