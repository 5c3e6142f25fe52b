package serve

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/check"
	"sandwich/runtime/session"
)

// strictness is the value of --strict: which plans serve accepts.
type strictness string

// Values of --strict: absent, given without a value, and optimal.
const (
	strictNo      strictness = ""
	strictGood    strictness = "good"
	strictOptimal strictness = "optimal"
)

func (s *strictness) Set(text string) error {
	switch v := strictness(text); v {
	case strictGood, strictOptimal:
		*s = v
	case "true":
		*s = strictGood
	case "false":
		*s = strictNo
	default:
		return errors.New("give --strict or --strict=optimal")
	}
	return nil
}

func (s *strictness) String() string { return string(*s) }
func (s *strictness) Type() string   { return "strictness" }

// refuses returns the reason why a plan with a verdict may not serve; nil if it may.
func (s strictness) refuses(plan *plans.Plan, v check.Verdict) error {
	switch {
	case s == strictNo:
	case !plan.Tuned:
		return exit.With(exit.Foreign, errors.New(
			"--strict: no tuned plan fits this host and model; create one with `sandwich tune`"))
	case v.Judgement == check.Retune:
		return exit.With(exit.Failed, fmt.Errorf("--strict: the plan %s must be tuned again: %s", plan.Name,
			v.Reasons[0]))
	case s == strictOptimal && v.Judgement != check.Optimal:
		return exit.With(exit.Failed, fmt.Errorf("--strict=optimal: the plan %s is %s: %s", plan.Name, v.Judgement,
			firstReason(v)))
	}
	return nil
}

// firstReason returns the first reason of a verdict and the number of others.
func firstReason(v check.Verdict) string {
	switch n := len(v.Reasons); n {
	case 0:
		return "no reason is recorded"
	case 1:
		return v.Reasons[0]
	default:
		return fmt.Sprintf("%s, and %d more", v.Reasons[0], n-1)
	}
}

// open reads the model, chooses its plan and verifies it. A plan that is slower than it could be
// serves with a warning, unless --strict rejects it.
func (f *serveFlags) open(ctx context.Context) (*session.Session, error) {
	f.session.Plans.Accept, f.session.Plans.Context = f.key.Check, ctx
	s, err := f.session.Open()
	if err != nil && ctx.Err() != nil {
		return nil, errUnloaded
	}
	if err != nil {
		return nil, err
	}
	if err := f.accept(s); err != nil {
		s.Close()
		return nil, err
	}
	if text := planWarning(s.Plan, s.Verdict); text != "" {
		show.Notice(text)
	}
	return s, nil
}

// planWarning returns a warning with the reasons why a plan is not optimal and the remedy; "" if it
// is.
func planWarning(p *plans.Plan, v check.Verdict) string {
	if len(v.Reasons) == 0 {
		return ""
	}
	remedy := "`sandwich plan verify` lists the reasons"
	if v.Judgement == check.Retune {
		remedy = "create it again with `sandwich tune`"
	}
	return fmt.Sprintf("warning: the plan %s is %s: %s; %s", p.Name, v.Judgement, firstReason(v), remedy)
}

// printDryRun prints the verdict on the plan and the memory by node; it loads nothing.
func (f *serveFlags) printDryRun(ctx context.Context, w io.Writer) error {
	if err := f.check(); err != nil {
		return exit.Usage(err)
	}
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.sizes.Context == 0 {
		f.sizes.Context = s.ContextLimit(footprint.DefaultContext)
	}
	rows, err := footprint.Sized(s.Plan, session.Sizes{Context: f.sizes.Context, Parallel: f.sizes.Parallel,
		StateBytes: f.sizes.StateBytes}, true)
	if err != nil {
		return exit.Usage(err)
	}
	if err := planreport.PrintVerdict(w, &planreport.Verified{Verdict: s.Verdict, Memory: rows}); err != nil {
		return err
	}
	return show.Sentence(w, fmt.Sprintf("for %s of up to %d tokens", message.Plural(f.sizes.Parallel, "request"),
		f.sizes.Context))
}
