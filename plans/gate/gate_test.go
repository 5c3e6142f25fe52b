package gate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
)

// simulated is a row of rounds on a machine whose speed at a round is speed(i), with noise, and a
// candidate of a known relative speed.
func simulated(seed uint64, n int, noise, candidate float64, speed func(i int, rng *rand.Rand) float64) Row {
	rng := rand.New(rand.NewPCG(seed, 3))
	r := Row{Name: "tg batch 1", Phase: "decode", Unit: "tokens/s"}
	one := func(i int) float64 { return 100 * speed(i, rng) * math.Exp(noise*rng.NormFloat64()) }
	for i := range n {
		r.Baseline, r.Again = append(r.Baseline, one(i)), append(r.Again, one(i))
		r.Candidate = append(r.Candidate, candidate*one(i))
	}
	return r
}

func steady(int, *rand.Rand) float64 { return 1 }

func judgeOne(r Row) RowVerdict {
	return Judge([]Row{r}, Options{MaxRegress: 0.03, Ceiling: DefaultCeiling, Interleaved: true})[0]
}

// TestJudgeCatchesAndKeepsQuiet checks that nearly all synthetic slowdowns of 5 % are reported,
// nearly no pair of equal plans is, and that an improvement passes.
func TestJudgeCatchesAndKeepsQuiet(t *testing.T) {
	const runs = 60
	found := map[float64]map[Finding]int{}
	for _, speed := range []float64{0.95, 1, 1.05} {
		found[speed] = map[Finding]int{}
		for seed := range uint64(runs) {
			found[speed][judgeOne(simulated(seed, 60, 0.02, speed, steady)).Finding]++
		}
	}
	if n := found[0.95][Regressed]; n < runs*28/30 {
		t.Errorf("slower by 5 %%: %v", found[0.95])
	}
	if n := found[1][Regressed]; n > runs*2/30 || found[1][Fine] < runs/2 {
		t.Errorf("equal: %v", found[1])
	}
	if n := found[1.05][Improved]; n < runs*28/30 || found[1.05][Regressed] > 0 {
		t.Errorf("faster by 5 %%: %v", found[1.05])
	}
}

// TestUnfitRunners checks that drift and an intermittent noisy neighbor make a row unmeasurable,
// whether or not the candidate is slower.
func TestUnfitRunners(t *testing.T) {
	for name, speed := range map[string]func(int, *rand.Rand) float64{
		"drift": func(i int, _ *rand.Rand) float64 { return 1 - 0.005*float64(i) },
		"neighbor": func(_ int, rng *rand.Rand) float64 {
			if rng.IntN(2) == 0 {
				return 0.7
			}
			return 1
		},
		"slow neighbor": func(i int, _ *rand.Rand) float64 {
			if i/5%2 == 0 {
				return 0.7
			}
			return 1
		},
	} {
		for _, candidate := range []float64{0.95, 1} {
			for seed := range uint64(20) {
				v := judgeOne(simulated(seed, 60, 0.01, candidate, speed))
				if v.Finding != Unmeasurable || !strings.Contains(v.Text, "above the limit of ") {
					t.Fatalf("%s, candidate %v: %s, %s (spread %v)", name, candidate, v.Finding, v.Text, v.Spread)
				}
			}
		}
	}
}

// TestHostChanged checks that a slowdown is attributed to the host if the ceiling of the
// candidate's host is lower by as much, and to the plan otherwise.
func TestHostChanged(t *testing.T) {
	row := simulated(1, 30, 0.01, 0.9, steady)
	row.BaselineCeiling = 200
	for ceiling, want := range map[float64]Finding{180: HostChanged, 200: Regressed, 220: Regressed} {
		row.CandidateCeiling = ceiling
		if v := judgeOne(row); v.Finding != want {
			t.Errorf("ceiling %v: %s, %s", ceiling, v.Finding, v.Text)
		}
	}
}

func TestDecide(t *testing.T) {
	day := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	noisy := simulated(1, 30, 0.01, 1, func(i int, _ *rand.Rand) float64 { return 1 - 0.015*float64(i) })
	noisy.Name = "noisy"
	slow, fine := simulated(2, 60, 0.01, 0.9, steady), simulated(3, 60, 0.01, 1, steady)
	waiver := Waiver{Row: "noisy", Ceiling: 0.5, Expires: day.AddDate(0, 0, 1), Reason: "a shared runner"}
	expired, low := waiver, waiver
	expired.Expires, low.Ceiling = day, 0.08
	broken := []Check{{Name: "x", OK: false, Text: "y"}}
	slower := waiver
	slower.Row = slow.Name
	for name, c := range map[string]struct {
		checks  []Check
		rows    []Row
		waivers []Waiver
		equal   bool
		exit    int
	}{
		"fine":                       {nil, []Row{fine}, nil, false, ExitFine},
		"regressed":                  {nil, []Row{fine, slow}, nil, false, ExitFailed},
		"noisy":                      {nil, []Row{fine, noisy}, nil, false, ExitUndecided},
		"noisy and regressed":        {nil, []Row{slow, noisy}, nil, false, ExitFailed},
		"waived":                     {nil, []Row{fine, noisy}, []Waiver{waiver}, false, ExitFine},
		"expired":                    {nil, []Row{fine, noisy}, []Waiver{expired}, false, ExitUndecided},
		"waived up to less":          {nil, []Row{fine, noisy}, []Waiver{low}, false, ExitUndecided},
		"a regression is not waived": {nil, []Row{slow}, []Waiver{slower}, false, ExitFailed},
		"structure":                  {broken, []Row{fine}, nil, false, ExitFailed},
		"nothing":                    {nil, nil, nil, false, ExitUndecided},
		"equal":                      {nil, nil, nil, true, ExitFine},
		"too few":                    {nil, []Row{simulated(1, 4, 0, 0.5, steady)}, nil, false, ExitUndecided},
	} {
		rows := Judge(c.rows, Options{MaxRegress: 0.03, Ceiling: DefaultCeiling, Interleaved: true, Waivers: c.waivers,
			Now: day})
		if v := Decide(c.checks, rows, c.equal); v.Exit != c.exit {
			t.Errorf("%s: exit %d (%s), want %d", name, v.Exit, v.Text, c.exit)
		}
	}
}

func TestInputRefused(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	good := "version: 1\nwaivers:\n  - {row: a, ceiling: 10%, expires: 2026-12-31, reason: because}\n"
	if w, err := ParseWaivers([]byte(good), now); err != nil || len(w) != 1 || w[0].Ceiling != 0.1 {
		t.Fatalf("%v: %v", w, err)
	}
	for _, c := range []struct {
		text, want string
		now        time.Time
	}{
		{good, "clock", time.Unix(0, 0)},
		{"version: 2\n", "version 2", now},
		{strings.Replace(good, "10%", "10", 1), "percentage", now},
		{strings.Replace(good, "10%", "-1%", 1), "percentage", now},
		{strings.Replace(good, "10%", "NaN%", 1), "percentage", now},
		{strings.Replace(good, "2026-12-31", "soon", 1), "not a date", now},
		{strings.Replace(good, "because", `" "`, 1), "reason", now},
		{strings.Replace(good, "row: a", "row: a, row: b", 1), "already defined", now},
		{"version: 1\nwaivers: &a [*a]\n", "anchor", now},
		{"", "empty", now},
	} {
		if _, err := ParseWaivers([]byte(c.text), c.now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := ParseInvariants([]byte("version: 1\ninvariants: [decode is fast]\n")); err == nil ||
		!strings.Contains(err.Error(), "peak memory below 12 GiB") {
		t.Errorf("%v", err)
	}
	for i := range invariants {
		if v, err := parseInvariant(invariants[i].example); err != nil || v.rule != &invariants[i] {
			t.Errorf("%s: %v", invariants[i].example, err)
		}
	}
}

// TestCasesOfPooled checks that only prompts of a model without a head are measured.
func TestCasesOfPooled(t *testing.T) {
	q := plans.WeightShape{Role: "q", N: 64, K: 64, Type: "f32", Count: 1}
	head := q
	head.Role = "head"
	p := plans.Plan{BatchMax: 8, Chunk: 512, Model: plans.ModelShape{Weights: []plans.WeightShape{q}}}
	if got := Cases(&p, &p); len(got) != 1 || !got[0].Prefill {
		t.Errorf("pooled: %+v", got)
	}
	p.Model.Weights = append(p.Model.Weights, head)
	if got := Cases(&p, &p); len(got) != 3 {
		t.Errorf("with a head: %+v", got)
	}
}
