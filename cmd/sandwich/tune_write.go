package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/session"
)

// settle decides, before minutes are spent, where the plan goes: never silently over one for
// another host or model, or over what cannot be read. In the data folder the next free name does,
// since plans are found there by what they are for.
func (f *tuneFlags) settle(host *profiles.Profile, subject *session.Subject, named bool) error {
	base := strings.TrimSuffix(f.out, plans.Suffix)
	for n := 1; ; n++ {
		why := inTheWay(f.out, host, subject.Shape.Digest())
		switch {
		case why == "" || f.force:
			return nil
		case named || n > 99:
			return usageError(fmt.Errorf("-o %s: %s is there: name another -o, or replace it with --force", f.out, why))
		}
		f.out = fmt.Sprintf("%s-%d%s", base, n, plans.Suffix)
	}
}

// inTheWay says what at path is no plan for this host and model; "" where there is nothing else.
func inTheWay(path string, host *profiles.Profile, model string) string {
	b, err := plans.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "a damaged plan"
	case b.Plan.Fingerprint != host.Fingerprint():
		return "a plan for another host"
	case b.Plan.Model.Digest() != model:
		return "a plan for another model"
	}
	return ""
}

// save writes the plan to -o and returns where it lies. A plan there that was measured better
// stays, and the new one goes beside it, under a name that is not looked for; the error then says
// so.
func (f *tuneFlags) save(b *plans.Bundle, host *profiles.Profile) (string, error) {
	var kept error
	path := f.out
	if old, err := plans.Read(path); err == nil && !f.force {
		if kept = better(old, b, host); kept != nil {
			path = beside(path)
			kept = fmt.Errorf("%s stays: %w; the new plan is %s, and --force replaces the old one", f.out, kept, path)
		}
	}
	if err := b.Write(path); err != nil {
		return "", err
	}
	return path, kept
}

// better says why an old plan is worth more than a new one; nil where it is not. Gains over the
// default are compared, which ran in turn with the plans: speeds of two days differ by what the
// machine does beside. Another build may have another default, and a plan that asks for tuning
// again has lost its claim.
func better(old, fresh *plans.Bundle, host *profiles.Profile) error {
	if !old.Plan.Tuned || old.Evidence.Build != fresh.Evidence.Build ||
		plans.Verify(old, host, &fresh.Plan.Model).Judgement == plans.Retune {
		return nil
	}
	if !fresh.Plan.Tuned {
		return errors.New("it was measured, and the new plan was not, for lack of time")
	}
	was, is := old.Evidence.Outcomes(), fresh.Evidence.Outcomes()
	if len(was) == 0 || len(is) == 0 {
		return nil
	}
	noise := max(old.Evidence.Noise, fresh.Evidence.Noise)
	if overall(was)/overall(is)-1 <= noise {
		return nil
	}
	return fmt.Errorf("it was measured %s faster than the default, the new plan %s, and noise is %.0f %%",
		gainsText(was), gainsText(is), 100*noise)
}

// overall is the geometric mean of both phases' speed over the default's.
func overall(outcomes []plans.Outcome) float64 {
	product := 1.0
	for _, o := range outcomes {
		product *= 1 + o.Over()
	}
	return math.Sqrt(product)
}

func gainsText(outcomes []plans.Outcome) string {
	var out []string
	for _, o := range outcomes {
		out = append(out, fmt.Sprintf("%.0f %% in %s", 100*o.Over(), o.Phase))
	}
	return strings.Join(out, " and ")
}

// beside is the first free name PATH.1, PATH.2 and so on. It does not end as plans do, so that no
// verb finds the plan there by itself.
func beside(path string) string {
	path = filepath.Clean(path)
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.%d", path, n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}
