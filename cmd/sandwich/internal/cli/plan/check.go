package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/gate"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/runtime/model/modelshape"
	"sandwich/tuner/measure/llm"
)

// checkFlags holds the flags of plan check.
type checkFlags struct {
	baseline, candidate string
	model               string
	maxRegress, ceiling percentValue
	measure, selfTest   bool
	budget              time.Duration
	waivers, invariants string
	report              string

	began time.Time
}

func newPlanCheck() *cobra.Command {
	f := checkFlags{maxRegress: 0.03, ceiling: gate.DefaultCeiling}
	c := &cobra.Command{
		Use:   "check --baseline A --candidate B",
		Short: "Check in CI that a candidate plan is sound and not slower than a baseline",
		Long: `Compare a candidate plan with a baseline in CI. The structure is checked first: hashes, the PUs of the plan's host, the
model, and the invariants of --invariants. With --measure, on a host with the fingerprint of both plans, both plans then
run interleaved, the baseline twice per round, until the interval of their ratio is narrow or --budget ends. Without
--measure the samples recorded in the bundles are compared, and the output says so.

A row is regressed if the 95 % interval of the ratio excludes 1, the ratio is more than --max-regress below 1, and the
Mann-Whitney test with Holm's correction over all rows agrees. With --measure the ratio is the median of the ratios of
single rounds, so that slow changes of the machine's speed cancel out. A row is unmeasurable, because of other processes
and not the plan, if

  - two equal arms differ by more than --ceiling,
  - other processes take more than twice that share of a PU,
  - the speed of the machine fluctuates by more than twice or drifts by more than three times that share.

--waivers allows named rows to be unmeasurable, up to a limit and until a date. --self-test compares the baseline with
itself slowed down by twice --max-regress, and fails if the slowdown is not detected.

Exit codes: 0 fine, 1 regressed or an invariant broken, 2 a plan or file cannot be used, 3 undecidable on this runner,
4 --measure on another host than that of the plans.`,
		Example: `  sandwich plan check --baseline main.plan --candidate new.plan
  sandwich plan check --baseline main.plan --candidate new.plan --measure --model llama.gguf --format junit
  sandwich plan check --baseline main.plan --candidate new.plan --invariants invariants.yaml --waivers waivers.yaml
  sandwich plan check --report answer.json --format junit`,
		Args: flags.ExactArgs(0, ""),
	}
	fs := c.Flags()
	fs.StringVar(&f.baseline, "baseline", "", "plan to compare with, such as that of the main branch")
	fs.StringVar(&f.candidate, "candidate", "", "plan to check")
	modelref.Flag(c, &f.model, "model", "m", "", "GGUF file or pulled model to measure with (default: the embedded "+
		"model)")
	fs.Var(&f.maxRegress, "max-regress", "maximum slowdown of the candidate")
	fs.Var(&f.ceiling, "ceiling", "spread of equal arms above which a row is unmeasurable")
	fs.BoolVar(&f.measure, "measure", false, "run both plans interleaved on this host")
	fs.BoolVar(&f.selfTest, "self-test", false,
		"replace the candidate by a slowed baseline, and fail if the slowdown is not detected")
	flags.Duration(fs, &f.budget, "budget", 90*time.Second, "time of --measure")
	fs.StringVar(&f.waivers, "waivers", "", "YAML file with rows that may be unmeasurable")
	fs.StringVar(&f.invariants, "invariants", "", "YAML file with invariants that the candidate must satisfy")
	fs.StringVar(&f.report, "report", "", "JSON output of an earlier run, to print in another format")
	format := flags.Format(c, "table", "json", "junit", "markdown", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f.began = time.Now()
		report, err := f.run(c.Context())
		if err != nil {
			return err
		}
		if err := report.print(c.OutOrStdout(), *format); err != nil {
			return err
		}
		if report.Exit != exit.OK {
			return exit.Silent(report.Exit)
		}
		return nil
	}
	return c
}

// percentValue is a pflag.Value for a share in percent.
type percentValue float64

func (p *percentValue) Set(text string) (err error) {
	v, err := gate.ParsePercent(text)
	*p = percentValue(v)
	return err
}

func (p *percentValue) String() string { return fmt.Sprintf("%.4g%%", 100*float64(*p)) }
func (p *percentValue) Type() string   { return "share" }

func (f *checkFlags) check() error {
	switch {
	case f.baseline == "" || f.candidate == "":
		return errors.New("--baseline or --candidate is missing; give two plans: --baseline A --candidate B")
	case f.budget < 5*time.Second || f.budget > 24*time.Hour:
		return fmt.Errorf("--budget %s is out of range; give a time from 5s to 24h", f.budget)
	case !f.measure && f.model != "":
		return errors.New("--model needs --measure; leave it out to compare recorded samples")
	}
	return nil
}

// CheckReport is the result of plan check. Its JSON form is stable.
type CheckReport struct {
	gate.Verdict
	Mode      string    `json:"mode"` // recorded or measured
	SelfTest  bool      `json:"self_test"`
	Baseline  checkSide `json:"baseline"`
	Candidate checkSide `json:"candidate"`
	Notes     []string  `json:"notes"`
	Allowed   float64   `json:"max_regress"`
	Rounds    int       `json:"rounds,omitempty"`
	Seconds   float64   `json:"seconds"`
}

// parse parses the output of --format json.
func (r *CheckReport) parse(data []byte) error {
	exits := map[string]int{"fine": gate.ExitFine, "regressed": gate.ExitFailed, "failed": gate.ExitFailed,
		"undecidable": gate.ExitUndecided}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(r)
	if code, known := exits[r.Result]; err != nil || !known || code != r.Exit || r.Baseline.Path == "" {
		return errors.New("the file is not the output of `sandwich plan check --format json`")
	}
	return nil
}

// checkSide identifies one of the two plans.
type checkSide struct {
	Path        string `json:"path"`
	Name        string `json:"name"`
	Content     string `json:"content"`
	Fingerprint string `json:"fingerprint"`
}

func (f *checkFlags) run(ctx context.Context) (*CheckReport, error) {
	if f.report != "" {
		r := &CheckReport{}
		return r, readInput(f.report, "--report", r.parse)
	}
	if err := f.check(); err != nil {
		return nil, exit.Usage(err)
	}
	a, err := bundle.Read(f.baseline)
	if err != nil {
		return nil, exit.Plan(err)
	}
	b, err := bundle.Read(f.candidate)
	if err != nil {
		return nil, exit.Plan(err)
	}
	checks, err := f.structure(a, b)
	if err != nil {
		return nil, err
	}
	o := gate.Options{MaxRegress: float64(f.maxRegress), Ceiling: float64(f.ceiling), Interleaved: f.measure,
		Now: time.Now()}
	if err := readInput(f.waivers, "--waivers", func(data []byte) (err error) {
		o.Waivers, err = gate.ParseWaivers(data, o.Now)
		return err
	}); err != nil {
		return nil, err
	}
	r := &CheckReport{Mode: "recorded", SelfTest: f.selfTest, Notes: []string{}, Allowed: o.MaxRegress,
		Baseline: sideOf(f.baseline, a), Candidate: sideOf(f.candidate, b)}
	var rows []gate.Row
	if f.measure {
		r.Mode = "measured"
		rows, err = f.measured(ctx, a, b, r)
	} else {
		rows = f.recorded(a, b, r)
	}
	if err != nil {
		return nil, err
	}
	r.Verdict = gate.Decide(checks, gate.Judge(rows, o), a.Plan.Digest() == b.Plan.Digest())
	for _, row := range rows {
		r.Rounds = max(r.Rounds, len(row.Candidate))
	}
	if f.selfTest {
		r.judgeSelf(syntheticSlowdown(o.MaxRegress))
	}
	for _, w := range o.Waivers {
		if !strings.Contains(rowNames(rows), "\n"+w.Row+"\n") {
			r.Notes = append(r.Notes, fmt.Sprintf("the waiver for %q matches no row", w.Row))
		}
	}
	r.Seconds = time.Since(f.began).Seconds()
	return r, nil
}

func rowNames(rows []gate.Row) string {
	out := "\n"
	for _, r := range rows {
		out += r.Name + "\n"
	}
	return out
}

func sideOf(path string, b *bundle.Bundle) checkSide {
	return checkSide{path, b.Plan.Name, b.Plan.Digest(), b.Plan.Fingerprint}
}

// syntheticSlowdown returns the slowdown of the self-test as a fraction.
func syntheticSlowdown(maxRegress float64) float64 { return max(0.05, 2*maxRegress) }

// judgeSelf sets the verdict of a self-test, which passes if the synthetic regression was found on
// at least one row. Other processes may hide it on the others.
func (r *CheckReport) judgeSelf(slowdown float64) {
	if r.Result == "regressed" {
		r.Result, r.Exit = "fine", gate.ExitFine
		r.Text = fmt.Sprintf("self-test passed: a synthetic slowdown of %s was detected", show.Share(slowdown))
		return
	}
	r.Result, r.Exit = "undecidable", gate.ExitUndecided
	r.Text = fmt.Sprintf("self-test failed: a synthetic slowdown of %s was not detected on this runner",
		show.Share(slowdown))
}

// structure rejects plans that cannot be compared and checks the properties that the candidate must
// keep.
func (f *checkFlags) structure(a, b *bundle.Bundle) ([]gate.Check, error) {
	for _, side := range []struct {
		path string
		b    *bundle.Bundle
	}{{f.baseline, a}, {f.candidate, b}} {
		if err := side.b.Plan.CheckHost(&side.b.Host); err != nil {
			return nil,
				exit.Usage(fmt.Errorf("%s does not fit the host recorded in it: %w; create it again with "+
					"`sandwich tune`", side.path, err))
		}
	}
	if err := check.Bundle(b, nil, &a.Plan.Model); err != nil {
		return nil, exit.Usage(fmt.Errorf("the plans cannot be compared: %w", err))
	}
	checks := []gate.Check{{Name: "schema and hashes", OK: true}, {Name: "PUs and instructions of its host", OK: true},
		{Name: "model of the baseline", OK: true}}
	var invariants []gate.Invariant
	if err := readInput(f.invariants, "--invariants", func(data []byte) (err error) {
		invariants, err = gate.ParseInvariants(data)
		return err
	}); err != nil {
		return nil, err
	}
	memory, err := footprint.Serving(&b.Plan, footprint.Context(&b.Plan), footprint.DefaultParallel, false)
	if err != nil {
		return nil, exit.Usage(err)
	}
	for _, v := range invariants {
		checks = append(checks, v.Check(&gate.Subject{Bundle: b, Memory: footprint.Total(memory)}))
	}
	return checks, nil
}

// readInput parses a file that a flag names, if it names one.
func readInput(path, flag string, parse func(data []byte) error) error {
	if path == "" {
		return nil
	}
	data, err := retention.ReadRegular(path, profiles.MaxYAMLBytes)
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("%s %s: %w", flag, path, err))
	}
	return nil
}

// recorded compares the samples recorded in the bundles.
func (f *checkFlags) recorded(a, b *bundle.Bundle, r *CheckReport) []gate.Row {
	r.Notes = append(r.Notes, "the samples that each plan recorded when it was tuned were compared; --measure "+
		"runs both interleaved")
	other := b
	if f.selfTest {
		other = a
	}
	if !f.selfTest && a.Plan.Digest() == b.Plan.Digest() {
		return nil // both are the same plan
	}
	rows := gate.Recorded(a, other)
	for i := range rows {
		row := &rows[i]
		if f.selfTest {
			row.Candidate = nil
			for _, v := range row.Baseline {
				row.Candidate = append(row.Candidate, v/(1+syntheticSlowdown(float64(f.maxRegress))))
			}
			continue
		}
		c, ok := gate.ParseCase(row.Name)
		m, err := modelshape.Outline(a.Plan.Model)
		if !ok || err != nil {
			continue
		}
		// One plan on both hosts: the ceilings differ only by the machine.
		x, _, errX := llm.AtMost(&a.Host, m, &a.Plan, llm.CaseTest(c))
		y, _, errY := llm.AtMost(&b.Host, m, &a.Plan, llm.CaseTest(c))
		if errX == nil && errY == nil {
			row.BaselineCeiling, row.CandidateCeiling = x, y
		}
	}
	if a.Plan.Fingerprint != b.Plan.Fingerprint {
		r.Notes = append(r.Notes, "the plans are for different hosts: "+a.Host.Host.CPUModel+" and "+
			b.Host.Host.CPUModel)
	}
	return rows
}
