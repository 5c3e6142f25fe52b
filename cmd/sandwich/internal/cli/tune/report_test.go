package tune

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/evidence"
	"sandwich/plans/gate"
	"sandwich/plans/heuristic"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/runtime/session"
	"sandwich/tuner/finals"
)

// racedPlan returns a plan for this host that was raced: its speeds in both phases over those of
// the default, by round.
func racedPlan(t *testing.T, prefill, decode []float64, winner string) (*bundle.Bundle, *profiles.Profile) {
	t.Helper()
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := plan.ShapeOfFile("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := heuristic.Default(host, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Tuned = true
	e := evidence.Evidence{Version: plans.Version, Created: "2026-01-31T12:00:00Z", Strategy: "sandwich", Build: "abc",
		Noise: 0.02}
	for phase, gains := range map[string][]float64{"prefill": prefill, "decode": decode} {
		for _, name := range []string{evidence.ArmDefault, evidence.ArmAgain, "tuned on PUs 0-1"} {
			a := evidence.Arm{Name: phase + ", " + name, Test: "tg batch 1", Unit: "tokens/s"}
			if name == winner {
				a.Name = phase + ", " + evidence.WinnerMark + name
			}
			for i, g := range gains {
				speed := 1000 * (1 + 0.01*float64(i%2))
				if strings.HasPrefix(name, "tuned") {
					speed *= 1 + g
				}
				a.Samples = append(a.Samples, speed)
			}
			e.Finalists = append(e.Finalists, a)
		}
	}
	return &bundle.Bundle{Plan: *p, Host: *host, Evidence: e}, host
}

const (
	byDefault = evidence.ArmDefault
	byTuned   = "tuned on PUs 0-1"
)

// TestRaceTable checks that the winner comes first and is marked regardless of its speed, and that
// one sample has no interval.
func TestRaceTable(t *testing.T) {
	b, _ := racedPlan(t, []float64{0.03, -0.01, 0.02}, []float64{0.2}, byDefault)
	_, rows := planreport.RaceTable(&b.Evidence, "prefill")
	want := []string{"  tuned on PUs 0-1", rows[1][1], "3", "+1 %"} // 1.5 less a little: of the means of two
	if len(rows) != 3 || rows[0][0] != "* default" || !slices.Equal(rows[1], want) {
		t.Errorf("%q", rows)
	}
	if _, rows = planreport.RaceTable(&b.Evidence, "decode"); rows[0][1] != "1000" || rows[0][2] != "1" {
		t.Errorf("one sample: %q", rows)
	}
	header, rows := planreport.RaceTable(&evidence.Evidence{}, "decode")
	if len(rows) != 0 {
		t.Errorf("nothing measured: %q %q", header, rows)
	}
}

func TestVerdictText(t *testing.T) {
	gain := []float64{0.12, 0.11, 0.13, 0.12, 0.12, 0.12, 0.12, 0.12}
	small := []float64{0.01, -0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01}
	b, _ := racedPlan(t, gain, gain, byTuned)
	want := "prefill 12 % faster than the default (+11 to +12 %, n=8), noise 0 %; decode 12 %"
	if got := planreport.Verdict(b); !strings.HasPrefix(got, want) {
		t.Errorf("tuned: %q", got)
	}
	b, _ = racedPlan(t, small, small, byDefault)
	want = "no measurable gain over the default, which stays: prefill at best +1 % (0 to +1 %, n=8), noise 0 %; decode"
	if got := planreport.Verdict(b); !strings.HasPrefix(got, want) {
		t.Errorf("kept: %q", got)
	}
	b.Plan.Tuned = false
	if got := planreport.Verdict(b); !strings.HasPrefix(got, "untuned: the budget was over") {
		t.Errorf("untuned: %q", got)
	}
	b.Plan.Tuned, b.Evidence.Finalists = true, nil
	if got := planreport.Verdict(b); !strings.Contains(got, "won as kernels") {
		t.Errorf("no forwards: %q", got)
	}
}

// TestSaveKeepsTheBetterPlan checks that a plan with better measurements stays at -o without
// --force, and that the new one is not lost.
func TestSaveKeepsTheBetterPlan(t *testing.T) {
	gain, nothing := []float64{0.12, 0.12, 0.12}, []float64{0, 0, 0}
	good, host := racedPlan(t, gain, gain, byTuned)
	poor, _ := racedPlan(t, nothing, nothing, byDefault)
	f := Flags{Out: filepath.Join(t.TempDir(), "x.plan")}
	save := func(b *bundle.Bundle, want string, words ...string) {
		t.Helper()
		path, err := f.save(b, host)
		if path != want || (err == nil) != (len(words) == 0) {
			t.Fatalf("saved at %s (%v), want %s", path, err, want)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	save(poor, f.Out)
	save(good, f.Out) // a better one replaces
	save(poor, f.Out+".1",
		"12 % in prefill and 12 % in decode faster", "the new plan 0 % in prefill", f.Out+".1", "--force")
	save(poor, f.Out+".2", "12 %")
	undecided := *poor
	undecided.Plan.Tuned = false
	save(&undecided, f.Out+".3", "there was no time to tune the new plan")
	if back, err := bundle.Read(f.Out); err != nil || back.State() != bundle.Tuned {
		t.Errorf("the better plan is gone: %v", err)
	}
	later := *poor
	later.Evidence.Build = "def"
	save(&later, f.Out) // whose default may be another
	f.force = true
	save(good, f.Out)
	save(poor, f.Out)
}

// TestPrintRerun checks that the table and the error say of each arm whether it beats the plan, and
// that an interrupted rerun is an error.
func TestPrintRerun(t *testing.T) {
	row := func(arm string, ratio float64, f gate.Finding) gate.RowVerdict {
		return gate.RowVerdict{Row: gate.Row{Name: arm, Phase: "decode"}, Finding: f, P: 0.01,
			Ratio: gate.Interval{Median: ratio, Low: ratio - 0.01, High: ratio + 0.01}}
	}
	f := Flags{again: &finals.Rerun{Rounds: 30, Rows: []gate.RowVerdict{row("slow", 1.1, gate.Improved),
		row("alike", 1, gate.Fine)}}}
	var text strings.Builder
	if err := f.printRerun(&text); err != nil || f.beaten("x.plan") != nil {
		t.Fatal(err, f.beaten("x.plan"))
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"rerun, 30 rounds, interleaved:", "decode slow -9.1 % -9.9 to -8.3 % 0.010 slower",
		"decode alike +0.0 % -1.0 to +1.0 % 0.010 no significant difference"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(words, "cannot show") {
		t.Errorf("30 rounds are said to be too few:\n%s", text.String())
	}
	f.again.Same = []gate.RowVerdict{row("default again", 0.98, gate.Regressed), row("default", 1, gate.Fine)}
	text.Reset()
	if err := f.printRerun(&text); err != nil || f.beaten("x.plan") != nil {
		t.Errorf("arms that are the plan: %v, %v", err, f.beaten("x.plan"))
	}
	words = strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{"default again +2.0 % +1.0 to +3.1 % 0.010 equal to the plan",
		"default +0.0 % -1.0 to +1.0 % 0.010 equal to the plan",
		"differ from it: default again by +2.0 % in decode. Differences of this size are not significant"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	f.again.Rows = append(f.again.Rows, row("better", 0.9, gate.Regressed))
	err := f.beaten("x.plan")
	if err == nil || !strings.Contains(err.Error(), "better is faster than x.plan in decode by 11.1 %") {
		t.Errorf("a plan that was beaten: %v", err)
	}
	f.again.Rounds = 6
	text.Reset()
	if err := f.printRerun(&text); err != nil {
		t.Fatal(err)
	}
	if want := "6 rounds cannot show a difference among 3 comparisons, however large it is; 7 can."; !strings.Contains(
		text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
	f.again = &finals.Rerun{Why: "it was interrupted"}
	if err := f.beaten("x.plan"); err == nil || !strings.Contains(err.Error(), "x.plan was written") {
		t.Errorf("a rerun that was stopped: %v", err)
	}
}

// TestSettleInTheDataFolder checks that a plan takes the next free name in the data folder if a
// plan of another host has its name.
func TestSettleInTheDataFolder(t *testing.T) {
	b, host := racedPlan(t, []float64{0}, []float64{0}, byDefault)
	subject := &session.Subject{Shape: b.Plan.Model}
	dir := t.TempDir()
	f := Flags{Out: filepath.Join(dir, "x.plan")}
	if err := f.Settle(host, subject, false); err != nil || f.Out != filepath.Join(dir, "x.plan") {
		t.Fatalf("%s %v", f.Out, err)
	}
	if err := b.Write(f.Out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Out, "plan.yaml"), []byte("no plan"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Settle(host, subject, true); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("over a damaged one: %v", err)
	}
	if err := f.Settle(host, subject, false); err != nil || f.Out != filepath.Join(dir, "x-1.plan") {
		t.Errorf("%s %v", f.Out, err)
	}
}

// TestNoticeOfAKeptDefault checks that serve's notice distinguishes a default that was measured and
// kept, and that verify accepts it as the result of tuning.
func TestNoticeOfAKeptDefault(t *testing.T) {
	b, host := racedPlan(t, []float64{0, 0, 0}, []float64{0, 0, 0}, byDefault)
	c := selection.FromBundle("x.plan", b, host, &b.Plan.Model)
	strict := c.Plan.Tuned && c.Verdict.Judgement == check.Optimal
	if !strings.Contains(c.String(), "(default kept, measured): prefill on") || !strict {
		t.Errorf("%s: %s", c, c.Verdict.Judgement)
	}
	b, _ = racedPlan(t, []float64{0.2, 0.2, 0.2}, []float64{0.2, 0.2, 0.2}, byTuned)
	c = selection.FromBundle("x.plan", b, host, &b.Plan.Model)
	if !strings.Contains(c.String(), "(tuned): prefill on") {
		t.Errorf("%s", c)
	}
}

// TestLikelyGainIsToldAsThat checks that the verdict and the explanation call a gain likely if it
// is not certain.
func TestLikelyGainIsToldAsThat(t *testing.T) {
	likely := []float64{0.03, -0.02, 0.04, 0.05, 0.01, -0.03, 0.06, 0.02, 0.07, -0.025, 0.03}
	b, _ := racedPlan(t, likely, likely, byTuned)
	verdict := "prefill likely faster than the default, by 2 % (0 to +4 %, n=11)"
	if text := planreport.Verdict(b); !strings.Contains(text, verdict) {
		t.Errorf("the verdict: %s", text)
	}
	places, noise := b.Evidence.Places("prefill")
	story := "likely faster than the runner-up, default, with identical logits: +2.1 % (-0.3 to +4.5, n=11), which " +
		"equal arms show in one of 20 races"
	if text := planreport.PlacesText(places, noise); !strings.Contains(text, story) {
		t.Errorf("the story: %s", text)
	}
	if len(places) != 3 || places[1].Behind.Beats(noise) {
		t.Errorf("%+v", places)
	}
}

// TestVerdictOfSlowerPhase checks that the verdict names the loss of an arm that wins by both
// phases together and is slower in one.
func TestVerdictOfSlowerPhase(t *testing.T) {
	b, _ := racedPlan(t, []float64{0.5, 0.5, 0.5}, []float64{-0.2, -0.2, -0.2}, byTuned)
	for _, want := range []string{"prefill 50 % faster than the default", "decode 20 % slower than the default (",
		"the arm wins by both phases together"} {
		if text := planreport.Verdict(b); !strings.Contains(text, want) {
			t.Errorf("the verdict lacks %q: %s", want, text)
		}
	}
}

// TestArmsOfDifferentRoundsAreNotCompared checks that the explanation of arms without a common
// round says so and gives no figure.
func TestArmsOfDifferentRoundsAreNotCompared(t *testing.T) {
	gains := []float64{0.02, 0.03, 0.02, 0.025, 0.02, 0.03, 0.02, 0.025}
	b, _ := racedPlan(t, gains, gains, byTuned)
	ranks := evidence.Arm{Name: "prefill, tuned, 2 ranks", Test: "tg batch 1", Unit: "tokens/s", Rounds: []int{6, 7},
		Samples: []float64{1100, 1111}}
	for i := range b.Evidence.Finalists {
		if a := &b.Evidence.Finalists[i]; strings.HasSuffix(a.Name, byTuned) {
			a.Samples, a.Rounds = a.Samples[:6], []int{0, 1, 2, 3, 4, 5}
		}
	}
	b.Evidence.Finalists = append(b.Evidence.Finalists, ranks)
	places, noise := b.Evidence.Places("prefill")
	text := planreport.PlacesText(places, noise)
	if !strings.Contains(text, "tuned, 2 ranks, share no round; relative to the default they are at +2.") {
		t.Errorf("the story: %s", text)
	}
	var table strings.Builder
	p := planreport.PhaseStory{Phase: "prefill", Places: places, Verdict: text}
	if err := p.Print(&table); err != nil {
		t.Fatal(err)
	}
	if text := table.String(); !strings.Contains(text, "no common round") || strings.Contains(text, "n=0") {
		t.Error(text)
	}
}
