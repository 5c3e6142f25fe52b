package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/evidence"
	"sandwich/profiles"
	"sandwich/runtime/session"
)

// Settle decides, before the search starts, where to write the plan. It never overwrites a plan for
// another host or model, or an unreadable one, silently. In the data folder it takes the next free
// name.
func (f *Flags) Settle(host *profiles.Profile, subject *session.Subject, named bool) error {
	base := strings.TrimSuffix(f.Out, bundle.Suffix)
	for n := 1; ; n++ {
		why := inTheWay(f.Out, host, subject.Shape.Digest())
		switch {
		case why == "" || f.force:
			return nil
		case named || n > 99:
			return exit.Usage(fmt.Errorf("-o %s: %s exists there; give another path, or replace it with --force",
				f.Out, why))
		}
		f.Out = fmt.Sprintf("%s-%d%s", base, n, bundle.Suffix)
	}
}

// inTheWay describes a plan at path that is damaged or is for another host or model; "" if there is
// none.
func inTheWay(path string, host *profiles.Profile, model string) string {
	b, err := bundle.Read(path)
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

// save writes the plan to -o and returns its path. If a plan with better measurements exists there,
// save keeps it, writes the new one next to it under a name that no verb finds, and returns an
// error that says so.
func (f *Flags) save(b *bundle.Bundle, host *profiles.Profile) (string, error) {
	var kept error
	path := f.Out
	if old, err := bundle.Read(path); err == nil && !f.force {
		if kept = better(old, b, host); kept != nil {
			path = freePath(path)
			kept = fmt.Errorf("%s is kept: %w; the new plan is %s; --force replaces the old one", f.Out, kept, path)
		}
	}
	if err := b.Write(path); err != nil {
		return "", err
	}
	return path, kept
}

// better returns an error that says why an old plan is better than a new one; nil if it is not. It
// compares gains over the default, which ran interleaved with the plans, since absolute speeds of
// different days depend on other load. A plan of another build, or one that needs tuning again, is
// never better.
func better(old, fresh *bundle.Bundle, host *profiles.Profile) error {
	if !old.Plan.Tuned || old.Evidence.Build != fresh.Evidence.Build ||
		check.Verify(old, host, &fresh.Plan.Model).Judgement == check.Retune {
		return nil
	}
	if !fresh.Plan.Tuned {
		return errors.New("it was tuned, and there was no time to tune the new plan")
	}
	was, is := old.Evidence.Outcomes(), fresh.Evidence.Outcomes()
	if len(was) == 0 || len(is) == 0 {
		return nil
	}
	noise := max(old.Evidence.Noise, fresh.Evidence.Noise)
	if overall(was)/overall(is)-1 <= noise {
		return nil
	}
	return fmt.Errorf("it was measured %s faster than the default, the new plan %s, with a noise of %.0f %%",
		gainsText(was), gainsText(is), 100*noise)
}

// overall returns the geometric mean of the speed of both phases over the default's.
func overall(outcomes []evidence.Outcome) float64 {
	product := 1.0
	for _, o := range outcomes {
		product *= 1 + o.Over()
	}
	return math.Sqrt(product)
}

// gainsText lists the gains of the phases over the default.
func gainsText(outcomes []evidence.Outcome) string {
	var out []string
	for _, o := range outcomes {
		out = append(out, fmt.Sprintf("%.0f %% in %s", 100*o.Over(), o.Phase))
	}
	return strings.Join(out, " and ")
}

// freePath returns the first free name of PATH.1, PATH.2 and so on. The name lacks the suffix of
// plans, so no verb finds the plan by default.
func freePath(path string) string {
	path = filepath.Clean(path)
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.%d", path, n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}
