package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandwich/cmd/sandwich/internal/cli/plan"
	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/llm"
)

// The kinds of damages that the proof plants.
const (
	oneTable  = "a worse slice in one table"
	onePhase  = "one phase only"
	halfWidth = "half the width for some rows"
)

var kinds = []string{oneTable, onePhase, halfWidth}

// window is the range of true effects that a proof needs.
type window struct{ low, high float64 }

var aboutFive, aboutOne = window{0.045, 0.055}, window{0.007, 0.013}

// miss returns the distance of an effect from the middle of the window.
func (w window) miss(e *effect) float64 { return math.Abs(e.Slower - (w.low+w.high)/2) }

// damage describes a plan with a known slowdown in one phase. The damages of a family are listed in
// ascending order of slowdown.
type damage struct {
	name, kind, family string
	prefill            bool
	plan               *plans.Plan
}

// widestTruth is the widest interval of an effect that is accepted as measured.
const widestTruth = 0.01

// missRefined is the largest distance from the middle of the window at which an effect measured for
// a minute is measured again for longer.
const missRefined = 0.008

// maxTries limits the damages of a kind that are measured before the proof leaves the kind out.
const maxTries = 4

// establish finds a damage of a kind with an effect within the window. It bisects each family with
// measurements of a minute, then measures candidates near the window until the interval is narrow
// enough.
func (p *proof) establish(t *testing.T, kind string, w window) {
	tries, met := 0, map[string]bool{}
	for _, first := range p.list {
		if first.kind != kind || met[first.family] {
			continue
		}
		met[first.family] = true
		family := slices.DeleteFunc(slices.Clone(p.list), func(d damage) bool { return d.family != first.family })
		for len(family) > 0 {
			if best := p.nearest(kind, w); best != nil && best.within(w) || tries == maxTries {
				return
			}
			middle := len(family) / 2
			e := p.look(t, &family[middle], &p.Refined, *proofRefine, "")
			if w.miss(e) <= missRefined {
				e = p.truth(t, &family[middle], e.Row)
				tries++
			}
			if e.Slower < (w.low+w.high)/2 {
				family = family[middle+1:]
			} else {
				family = family[:middle]
			}
		}
	}
}

// truth returns the measured effect of a damage on a row.
func (p *proof) truth(t *testing.T, d *damage, row string) *effect {
	e := p.look(t, d, &p.Established, *proofPairs, row)
	if width := e.High - e.Low; !(width <= widestTruth) {
		p.Established = p.Established[:len(p.Established)-1]
		p.save(t)
		t.Fatalf("the interval is %.1f %% wide, and %.0f %% is needed: this machine is too noisy now, go on when "+
			"it is quiet", 100*width, 100*widestTruth)
	}
	return e
}

// look returns the effect of a damage from a list, or measures it within the budget if the list
// lacks it.
func (p *proof) look(t *testing.T, d *damage, list *[]effect, budget time.Duration, row string) *effect {
	i := slices.IndexFunc(*list, func(e effect) bool { return e.Damage == d.name })
	if i < 0 {
		i = len(*list)
		*list = append(*list, p.pair(t, d, budget, row))
		p.save(t)
	}
	return &(*list)[i]
}

// pair runs the base and a damaged plan interleaved for the budget and returns the effect on a row.
// If row is empty, it takes the row of the damaged phase with the largest slowdown: half of the
// pairs choose the row and the rest measure it, since the largest of several noisy figures is
// biased.
func (p *proof) pair(t *testing.T, d *damage, budget time.Duration, row string) effect {
	began := time.Now()
	file, _, err := session.OpenModel(*proofModel)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases := slices.DeleteFunc(gate.Cases(p.base, d.plan), func(c gate.Case) bool {
		return c.Prefill != d.prefill || row != "" && c.Name() != row
	})
	two, err := llm.OpenTwoPlans(t.Context(), file, p.base, d.plan, cases)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	rows := make([]gate.Row, len(cases))
	for i, c := range cases {
		if err := two.Warm(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		rows[i].Name = c.Name()
	}
	const fewest = 12
	for n := 0; n < fewest || time.Since(began) < budget; n++ {
		for i, c := range cases {
			lists := [2]*[]float64{&rows[i].Baseline, &rows[i].Candidate}
			for k := range lists {
				side := (k + n) % len(lists)
				rate, err := two.Sample(t.Context(), side, c)
				if err != nil {
					t.Fatal(err)
				}
				*lists[side] = append(*lists[side], rate)
			}
		}
	}
	worst, largest := effect{Damage: d.name, Kind: d.kind}, math.Inf(-1)
	for i := range rows {
		chosen, estimate := rows[i], rows[i]
		if row == "" {
			chosen, estimate = halves(&rows[i])
		}
		if slower := 1 - chosen.Estimate(true).Median; slower > largest {
			largest = slower
			r := estimate.Estimate(true)
			worst.Row, worst.Pairs = rows[i].Name, len(estimate.Baseline)
			worst.Slower, worst.Low, worst.High = 1-r.Median, 1-r.High, 1-r.Low
		}
	}
	t.Logf("%s: %s is %.2f %% slower (%.2f..%.2f, %d pairs)", d.name, worst.Row, 100*worst.Slower, 100*worst.Low,
		100*worst.High, worst.Pairs)
	return worst
}

// halves splits the samples of a row into two halves, each with both orders of the sides.
func halves(r *gate.Row) (a, b gate.Row) {
	for i := range r.Baseline {
		half := []*gate.Row{&a, &b}[i/2%2]
		half.Baseline = append(half.Baseline, r.Baseline[i])
		half.Candidate = append(half.Candidate, r.Candidate[i])
	}
	return a, b
}

// damagesOf returns the default plan for this host and model, and damages of it in fine steps.
func damagesOf(t *testing.T) (*plans.Plan, *profiles.Profile, []damage) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	shape, err := plan.ShapeOfFile(*proofModel)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func(o heuristic.Options) *plans.Plan {
		p, err := heuristic.Default(host, shape, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := fresh(heuristic.Options{})
	base.Tuned = true
	var out []damage
	known := map[string]bool{base.Digest(): true}
	add := func(kind, family string, prefill bool, change func(p *plans.Plan), format string, a ...any) {
		p := fresh(heuristic.Options{})
		p.Tuned = true
		change(p)
		if err := p.Validate(); err == nil && !known[p.Digest()] { // what no plan may have is no damage
			known[p.Digest()] = true
			out = append(out, damage{fmt.Sprintf(format, a...), kind, kind + family, prefill, p})
		}
	}
	for i, table := range base.Decode.Tables {
		for _, part := range unevenParts(base.Decode.PUs.Count()) {
			change := func(p *plans.Plan) { uneven(&p.Decode.Tables[i], part, false) }
			add(oneTable, fmt.Sprint(table.WeightKey), false, change, "decode's %s in slices of %.3f", table.WeightKey,
				part)
		}
	}
	for _, part := range unevenParts(base.Prefill.PUs.Count()) {
		add(onePhase, "all", true, func(p *plans.Plan) {
			for i := range p.Prefill.Tables {
				uneven(&p.Prefill.Tables[i], part, true)
			}
		}, "prefill in slices of %.3f", part)
	}
	some := bySize(base.Prefill.Tables)
	for n := 1; n < len(some); n++ {
		for _, part := range unevenParts(base.Prefill.PUs.Count()) {
			add(onePhase, fmt.Sprint(n), true, func(p *plans.Plan) {
				for _, i := range some[:n] {
					uneven(&p.Prefill.Tables[i], part, true)
				}
			}, "%d of prefill's tables in slices of %.3f", n, part)
		}
	}
	for _, rows := range []int{8, 6, 4, 3, 2, 1} {
		add(onePhase, "rows", true, func(p *plans.Plan) {
			for i := range p.Prefill.Tables {
				low(&p.Prefill.Tables[i], rows)
			}
		}, "prefill in slices of %d tiles' rows", rows)
	}
	if base.Widest() == "avx512" {
		addHalfWidth(base, fresh(heuristic.Options{ISA: "avx2", Weights: base.Weights}), add)
	}
	return base, host, out
}

// addHalfWidth gives some tables, from the smallest up, the kernels of half the width: for one
// number of decode's rows, for all numbers but one row, for one row, or in prefill.
func addHalfWidth(base, half *plans.Plan, add func(string, string, bool, func(*plans.Plan), string, ...any)) {
	order := bySize(base.Decode.Tables)
	one := func(family string, prefill bool, lo, hi int, tables []int) {
		add(halfWidth, family, prefill, func(p *plans.Plan) {
			phase, other := &p.Decode, &half.Decode
			if prefill {
				phase, other = &p.Prefill, &half.Prefill
			}
			for _, i := range tables {
				phase.Tables[i].Rules = spliced(&phase.Tables[i], &other.Tables[i], lo, hi)
			}
		}, "half the width for %d to %d rows (prefill %v) in tables %v", lo, hi, prefill, tables)
	}
	for n := 1; n <= len(order); n++ {
		for from := range len(order) - n + 1 {
			some := order[from : from+n]
			for rows := 2; rows <= base.BatchMax; rows++ {
				one(fmt.Sprint("rows of ", some), false, rows, rows, some)
			}
		}
	}
	for _, rows := range []struct {
		prefill bool
		lo, hi  int
	}{{false, 2, base.BatchMax}, {false, 1, 1}, {true, 1, base.SeqMax}} {
		for from := range order {
			for to := from + 1; to <= len(order); to++ {
				one(fmt.Sprint(rows, from), rows.prefill, rows.lo, rows.hi, order[from:to])
			}
		}
	}
}

// bySize returns the indices of tables in ascending order of matrix size.
func bySize(tables []plans.Table) []int {
	order := make([]int, len(tables))
	for i := range order {
		order[i] = i
	}
	bytes := func(i int) int { return tables[i].N * tables[i].K }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bytes(a), bytes(b)) })
	return order
}

// unevenParts returns the shares of a matrix that one of n workers gets in place of 1/n.
func unevenParts(n int) (out []float64) {
	for _, more := range []float64{0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8} {
		out = append(out, (1+more)/float64(n))
	}
	return out
}

// uneven cuts a table's columns into slices of a part of them, so that one worker has more than its
// share; tall leaves the rows in one slice.
func uneven(t *plans.Table, part float64, tall bool) {
	for i := range t.Rules {
		s := &t.Rules[i].Schedule
		s.WaysM, s.WaysN = 0, 0
		tiles := max(1, int(math.Round(part*float64(t.N)/float64(s.Kernel.NR))))
		s.BN = tiles * s.Kernel.NR
		if tall && !s.Pack {
			s.BM = (2048 + s.Kernel.MR - 1) / s.Kernel.MR * s.Kernel.MR
		}
	}
}

// low cuts a table's rows into slices of some tiles.
func low(t *plans.Table, tiles int) {
	for i := range t.Rules {
		s := &t.Rules[i].Schedule
		s.WaysM, s.WaysN = 0, 0
		s.BM = min(s.BM, tiles*s.Kernel.MR)
	}
}

// spliced returns the rules of a, with those of b for lo to hi rows.
func spliced(a, b *plans.Table, lo, hi int) (out []plans.Rule) {
	starts := []int{lo, hi + 1}
	for _, r := range slices.Concat(a.Rules, b.Rules) {
		starts = append(starts, r.MLo)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i, m := range starts {
		from := &plans.Phase{Tables: []plans.Table{*a}}
		if m >= lo && m <= hi {
			from = &plans.Phase{Tables: []plans.Table{*b}}
		}
		s, _ := from.Lookup(a.WeightKey, m)
		r := plans.Rule{MLo: m, Schedule: s}
		if i+1 < len(starts) {
			r.MHi = starts[i+1] - 1
		}
		out = append(out, r)
	}
	return out
}

// disturb takes time of a PU until it is called off: more and more of it, or all of it for half of
// every eight seconds.
func disturb(t *testing.T, pu int, what string) (end func()) {
	began, stop, done := time.Now(), make(chan struct{}), make(chan struct{})
	part := func(at time.Duration) float64 {
		if what == runTwo {
			return float64(int(at.Seconds()) / 4 % 2)
		}
		return min(0.7, 0.7*at.Seconds()/proofBudget.Seconds())
	}
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(pu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		const period = 20 * time.Millisecond
		for {
			select {
			case <-stop:
				return
			default:
			}
			turn := time.Now()
			busy := time.Duration(part(time.Since(began)) * float64(period))
			for time.Since(turn) < busy {
			}
			time.Sleep(period - time.Since(turn))
		}
	}()
	return func() { close(stop); <-done }
}
