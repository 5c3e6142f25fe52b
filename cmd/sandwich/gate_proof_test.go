package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/gate"
	"sandwich/profiles"
	"sandwich/profiles/retention"
)

var (
	proofState  = flag.String("gate-proof", "", "file with the state of the gate's proof: run it, or go on with it")
	proofModel  = flag.String("gate-model", "", "GGUF file that the proof measures with")
	proofBudget = flag.Duration("gate-run", 90*time.Second, "time of one run of the proof")
	proofRefine = flag.Duration("gate-refine", time.Minute, "time in which a damage is looked at")
	proofPairs  = flag.Duration("gate-establish", 10*time.Minute,
		"time in which the true effect of a damage is established")
)

// Kinds of runs of the proof, and how often each is repeated.
const (
	runDamaged  = "damaged"    // 4.5 to 5.5 % slower: to be caught
	runEqual    = "equal"      // the same plan under another name: to pass
	runImproved = "improved"   // the damage taken back: to pass
	runSmall    = "1 %"        // for orientation
	runDrift    = "drift"      // equal, next to a neighbor that takes more and more: undecidable
	runTwo      = "two speeds" // equal, next to one that comes and goes
)

var proofCounts = []struct {
	what string
	n    int
}{{runDamaged, 30}, {runEqual, 30}, {runImproved, 6}, {runSmall, 10}, {runDrift, 3}, {runTwo, 3}}

// proof is its state, written after each step so that the proof may be spread over days.
type proof struct {
	Fingerprint string    `json:"fingerprint"` // of the host
	Model       string    `json:"model"`       // digest of its shape
	Refined     []effect  `json:"refined"`     // a minute each
	Established []effect  `json:"established"` // minutes each
	Runs        []gateRun `json:"runs"`

	path string
	dir  string // of the bundles that runs compare
	base *plans.Plan
	host *profiles.Profile
	list []damage
}

// effect holds the slowdown of the worst row of a damage, with the 95 % interval over pairs.
type effect struct {
	Damage string  `json:"damage"`
	Kind   string  `json:"kind"`
	Row    string  `json:"row"`
	Slower float64 `json:"slower"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Pairs  int     `json:"pairs"`
}

// within reports whether an effect is in a window.
func (e *effect) within(w window) bool { return e.Slower >= w.low && e.Slower <= w.high }

// gateRun is one run of plan check with its output.
type gateRun struct {
	What   string  `json:"what"`
	Damage string  `json:"damage,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Exit   int     `json:"exit"`
	Spread float64 `json:"aa_noise"` // the largest of its rows
	Noisy  bool    `json:"noisy"`    // a row's equal arms differed by more than the ceiling
	Rounds int     `json:"rounds"`
	Took   float64 `json:"seconds"`
	When   string  `json:"when"`
}

// TestGateProof creates slowdowns whose true effect it measures first, and counts how many of them
// `plan check --measure` detects among equal plans, improvements and noisy neighbors. It needs a
// quiet machine and some hours, and resumes an interrupted proof; without -gate-proof it is
// skipped.
func TestGateProof(t *testing.T) {
	if *proofState == "" {
		t.Skip("the proof of the gate takes hours: make gate-proof")
	}
	p := readProof(t)
	for _, kind := range kinds {
		p.establish(t, kind, aboutFive)
	}
	p.runAll(t, func(what string) bool { return what != runSmall })
	for _, kind := range kinds { // one will do for orientation
		if p.damageOf(runSmall) == nil {
			p.establish(t, kind, aboutOne)
		}
	}
	p.runAll(t, func(what string) bool { return what == runSmall })
	t.Log("\n" + p.report())
	p.judge(t)
}

// runAll executes the remaining runs that wanted selects.
func (p *proof) runAll(t *testing.T, wanted func(what string) bool) {
	for _, what := range p.order() {
		if wanted(what) && !p.run(t, what) {
			t.Errorf("no run %q: no damage has the effect that it needs", what)
		}
	}
}

// readProof begins a proof, or takes up the one that was begun on this host with this model.
func readProof(t *testing.T) *proof {
	p := &proof{path: *proofState, dir: t.TempDir()}
	data, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(data, p)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	p.base, p.host, p.list = damagesOf(t)
	model := p.base.Model.Digest()
	if p.Model == "" {
		p.Fingerprint, p.Model = p.base.Fingerprint, model
	}
	if p.Model != model || p.Fingerprint != p.base.Fingerprint {
		t.Fatalf("%s was begun on another host or with another model: name another file", p.path)
	}
	return p
}

func (p *proof) save(t *testing.T) {
	data, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = retention.WriteFile(p.path, data)
	}
	if err == nil {
		err = retention.WriteFile(p.path+".md", []byte(p.report()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// order returns the remaining runs in mixed order, so that an interrupted proof has some of each
// kind.
func (p *proof) order() (out []string) {
	const rounds = 30
	for i := range rounds {
		for _, c := range proofCounts {
			for n := i * c.n / rounds; n < (i+1)*c.n/rounds; n++ {
				out = append(out, c.what)
			}
		}
	}
	for _, r := range p.Runs {
		if i := slices.Index(out, r.What); i >= 0 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// damageOf returns the next effect to use in runs of a kind, alternating between kinds of damage;
// nil if there is none.
func (p *proof) damageOf(what string) *effect {
	w := aboutFive
	if what == runSmall {
		w = aboutOne
	}
	n := 0
	for _, r := range p.Runs {
		if r.What == what {
			n++
		}
	}
	var fit []*effect
	for _, kind := range kinds {
		if e := p.nearest(kind, w); e != nil && e.within(w) {
			fit = append(fit, e)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[n%len(fit)]
}

// nearest returns the damage of a kind whose measured effect is nearest to a window.
func (p *proof) nearest(kind string, w window) (best *effect) {
	for i := range p.Established {
		e := &p.Established[i]
		if e.Kind == kind && (best == nil || w.miss(e) < w.miss(best)) {
			best = e
		}
	}
	return best
}

// run executes plan check once. It returns false if there is no damage for it.
func (p *proof) run(t *testing.T, what string) bool {
	a, b, r := p.base, *p.base, gateRun{What: what}
	b.Name += " under another name"
	switch what {
	case runSmall, runDamaged, runImproved:
		e := p.damageOf(what)
		if e == nil {
			return false
		}
		i := slices.IndexFunc(p.list, func(d damage) bool { return d.name == e.Damage })
		r.Damage, r.Kind, b = e.Damage, e.Kind, *p.list[i].plan
		b.Name += " damaged"
	case runDrift, runTwo:
		defer disturb(t, p.base.Decode.PUs.First(), what)()
	}
	left, right := a, &b
	if what == runImproved {
		left, right = right, left
	}
	p.check(t, left, right, &r)
	p.Runs = append(p.Runs, r)
	p.save(t)
	t.Logf("%s %s: exit %d after %d rounds in %.0f s, A/A %.1f %%", what, r.Damage, r.Exit, r.Rounds, r.Took,
		100*r.Spread)
	return true
}

// check runs the command itself, as a runner does.
func (p *proof) check(t *testing.T, a, b *plans.Plan, r *gateRun) {
	began := time.Now()
	r.When = began.UTC().Format(time.RFC3339)
	paths := [2]string{filepath.Join(p.dir, "a.plan"), filepath.Join(p.dir, "b.plan")}
	for i, side := range []*plans.Plan{a, b} {
		bundle := bundle.Bundle{Plan: *side, Host: *p.host, Evidence: evidence.Evidence{Version: plans.Version,
			Created: r.When}}
		if err := bundle.Write(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = []string{"sandwich", "plan", "check", "--measure", "--baseline", paths[0], "--candidate", paths[1],
		"--model", *proofModel, "--budget", proofBudget.String(), "--format", "json"}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	var answer plan.CheckReport
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("plan check answered %q: %v", out, err)
	}
	r.Exit, r.Rounds, r.Took = cmd.ProcessState.ExitCode(), answer.Rounds, time.Since(began).Seconds()
	for _, v := range answer.Rows {
		r.Spread = max(r.Spread, v.Share)
		r.Noisy = r.Noisy || v.Finding == gate.Unmeasurable
	}
}

// outcome returns the category that a run is counted in.
func (r *gateRun) outcome() string {
	switch {
	case r.Exit == gate.ExitUndecided && r.Noisy:
		return "unfit runner"
	case r.What == runDrift, r.What == runTwo:
		return "decided with a neighbor"
	case r.Exit == gate.ExitFailed:
		return "called regressed"
	case r.Exit == gate.ExitUndecided:
		return "not proven"
	case r.Exit == gate.ExitFine:
		return "passed"
	}
	return fmt.Sprintf("exit code %d", r.Exit)
}
