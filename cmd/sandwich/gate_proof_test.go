package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
)

var (
	proofState  = flag.String("gate-proof", "", "file with the state of the gate's proof: run it, or go on with it")
	proofModel  = flag.String("gate-model", "", "GGUF file that the proof measures with")
	proofBudget = flag.Duration("gate-run", 90*time.Second, "time of one run of the proof")
	proofPairs  = flag.Duration("gate-establish", 10*time.Minute,
		"time in which the true effect of a damage is established")
)

// What the proof wants: damages of a true effect within these, and how often each is run.
const (
	effectLow, effectHigh = 0.045, 0.055
	proofDamaged          = 30
	proofEqual            = 30
)

// proof is its state, written after each step so that the proof may be spread over days.
type proof struct {
	Effects map[string]float64 `json:"effects"` // true slowdown of a damage, by its name
	Runs    []proofRun         `json:"runs"`
}

type proofRun struct {
	Damage string  `json:"damage"` // "" for the equal plan
	Exit   int     `json:"exit"`
	Spread float64 `json:"spread"` // the largest of its rows
	When   string  `json:"when"`
}

// TestGateProof plants slowdowns whose true effect it establishes first and counts how many the
// gate catches, beside equal plans. It needs a quiet machine and hours; without -gate-proof it is
// skipped.
func TestGateProof(t *testing.T) {
	if *proofState == "" {
		t.Skip("the proof of the gate takes hours: make gate-proof")
	}
	var p proof
	data, err := os.ReadFile(*proofState)
	if err == nil {
		err = json.Unmarshal(data, &p)
	} else if errors.Is(err, fs.ErrNotExist) {
		p.Effects, err = map[string]float64{}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	save := func() {
		data, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*proofState, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, _, err := session.OpenModel(*proofModel)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	base, damages := proofPlans(t)
	for _, d := range damages {
		if _, done := p.Effects[d.name]; done {
			continue
		}
		rows := proofRace(t, file, base, d.plan, *proofPairs, 0)
		worst := 0.0
		for i := range rows {
			worst = max(worst, 1-rows[i].Estimate(true).Median)
		}
		p.Effects[d.name] = worst
		t.Logf("%s: true effect %.1f %%", d.name, 100*worst)
		save()
	}
	damages = slices.DeleteFunc(damages, func(d damage) bool {
		return p.Effects[d.name] < effectLow || p.Effects[d.name] > effectHigh
	})
	if len(damages) == 0 {
		t.Fatalf("no damage has a true effect of %v to %v: %v", effectLow, effectHigh, p.Effects)
	}
	for len(p.Runs) < proofDamaged+proofEqual {
		n := len(p.Runs)
		d := damage{"", base}
		if n%2 == 0 {
			d = damages[n/2%len(damages)]
		}
		v := gate.Judge(proofRace(t, file, base, d.plan, *proofBudget, 0.03), gate.Options{MaxRegress: 0.03,
			Ceiling: gate.DefaultCeiling, InTurn: true})
		run := proofRun{Damage: d.name, Exit: gate.Decide(nil, v, false).Exit,
			When: time.Now().UTC().Format(time.RFC3339)}
		for _, r := range v {
			run.Spread = max(run.Spread, r.Spread)
		}
		p.Runs = append(p.Runs, run)
		save()
	}
	p.judge(t)
}

// judge holds the counts: runs that end undecided count for neither.
func (p *proof) judge(t *testing.T) {
	caught, missed, alarms, quiet, undecided := 0, 0, 0, 0, 0
	for _, r := range p.Runs {
		switch {
		case r.Exit == gate.ExitUndecided:
			undecided++
		case r.Damage != "" && r.Exit == gate.ExitFailed:
			caught++
		case r.Damage != "":
			missed++
		case r.Exit == gate.ExitFailed:
			alarms++
		default:
			quiet++
		}
	}
	t.Logf("caught %d, missed %d; equal plans: alarms %d, quiet %d; undecided %d", caught, missed, alarms, quiet,
		undecided)
	if missed > 2 || alarms > 2 || undecided > 6 {
		t.Error("the gate does not hold what it promises")
	}
}

// damage is a plan with something worse planted.
type damage struct {
	name string
	plan *plans.Plan
}

// proofPlans are the rule of thumb for this host and model, and damages of it in steps: worse
// slices in one table, worse slices in one phase, and kernels of half the width up to some rows.
func proofPlans(t *testing.T) (*plans.Plan, []damage) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := shapeOfFile(*proofModel)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func(isa string) *plans.Plan {
		p, err := thumb.Default(host, shape, thumb.Options{ISA: isa})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := fresh("")
	var out []damage
	add := func(name string, change func(p *plans.Plan)) {
		p := fresh("")
		change(p)
		if err := p.Validate(); err == nil { // a damage that no plan may have is none
			out = append(out, damage{name, p})
		}
	}
	for i := range base.Decode.Tables {
		for _, parts := range []int{2, 4, 8} {
			add(fmt.Sprintf("slices of table %d cut by %d", i, parts), func(p *plans.Plan) {
				cutSlices(&p.Decode.Tables[i], parts)
				cutSlices(&p.Prefill.Tables[i], parts)
			})
		}
	}
	for _, parts := range []int{2, 4, 8} {
		add(fmt.Sprintf("slices of prefill cut by %d", parts), func(p *plans.Plan) {
			for i := range p.Prefill.Tables {
				cutSlices(&p.Prefill.Tables[i], parts)
			}
		})
	}
	if base.Widest() == "avx512" {
		for i := range base.Decode.Tables {
			add(fmt.Sprintf("half the width in table %d", i), func(p *plans.Plan) {
				p.Decode.Tables[i] = fresh("avx2").Decode.Tables[i]
			})
		}
	}
	return base, out
}

// cutSlices makes the slices of a table smaller, down to one tile.
func cutSlices(t *plans.Table, parts int) {
	for i := range t.Rules {
		s := &t.Rules[i].Schedule
		s.BN = max(s.Kernel.NR, s.BN/parts/s.Kernel.NR*s.Kernel.NR)
		s.BM = max(s.Kernel.MR, s.BM/parts/s.Kernel.MR*s.Kernel.MR)
	}
}

// proofRace measures two plans in turn; with an allowance it stops when the gate would.
func proofRace(t *testing.T, file *gguf.File, a, b *plans.Plan, budget time.Duration, allowed float64) []gate.Row {
	cases := gate.Cases(a, b)
	two, err := measure.OpenTwoPlans(t.Context(), file, a, b, cases)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	f := checkFlags{maxRegress: percentValue(allowed), ceiling: gate.DefaultCeiling, budget: budget, began: time.Now()}
	if allowed == 0 {
		f.ceiling = percentValue(math.Inf(-1)) // never enough
	}
	rows, err := f.race(t.Context(), two, cases)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
