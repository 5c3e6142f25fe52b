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

// rated returns the host with the rates that default plans need for tiles, the path of bf16 weights
// and, if requested, attention and integer sums on vectors, and without other ceilings. Rates are
// measured once per build and stored in the data folder, so that a rate near a threshold does not
// change the plan or its results between starts. Missing rates are measured and added. Without a
// data folder they are measured each time.
func (o *Options) rated(host *profiles.Profile, attention, sums bool) (*profiles.Profile, error) {
	p := *host
	p.Ceilings = nil
	isa := host.Features().Best()
	path := o.ratesPath(host)
	if kept, err := profiles.Load(path); err == nil && kept.Fingerprint() == host.Fingerprint() {
		p.Ceilings = kept.Ceilings
		if heuristic.RatesKnown(kept, isa) && (!attention || heuristic.AttentionKnown(kept, isa, o.heuristic())) &&
			(!sums || heuristic.SumsKnown(kept)) {
			return &p, nil
		}
	}
	types := append([]string{microkernel.ComputeF32.String(), microkernel.ComputeInt8.String(),
		microkernel.ComputeBF16.String()}, microkernel.UnitTypes()...)
	if sums {
		types = append(types, microkernel.IntegerTypes()...)
	}
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

// added returns the stored ceilings and those measured ones that are not stored.
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

// ratesStem returns the prefix of the file names of a host's rates, "" without a data folder.
func (o *Options) ratesStem(host *profiles.Profile) string {
	if o.Folder == "" {
		return ""
	}
	return filepath.Join(o.Folder, ratesPrefix+strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16])
}

// ratesPath returns the file of this build's rates of a host, "" without a data folder.
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

// keepRates writes this build's rates of a host and deletes those of old builds.
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
