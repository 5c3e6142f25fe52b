package roofline

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// m4 is the machine of SMEPilot figure 3: 8 CPU workers 1.85, 2 SME units 2.92 TFLOP/s, together
// 4.27, 247 GB/s shared.
var m4 = Ceiling{Bandwidth: 247e9, Mixed: 4.27e12, Targets: []Target{{Name: "cpu", Peak: 1.85e12},
	{Name: "sme", Peak: 2.92e12, Units: 2}}}

func TestRegimesOfSMEPilot(t *testing.T) {
	wide := Output{Rows: 512, Columns: 4096, TileRows: 16, TileColumns: 48}
	for _, c := range []struct {
		name    string
		work    Work
		out     Output
		regime  Regime
		target  string
		ceiling string
		why     string
	}{
		{"decode gemv", MatMul(1, 4096, 4096, 16), wide, MemoryBound, "cpu", "memory", "below the ridge of 7.49"},
		{"batched decode", MatMul(10, 4096, 4096, 16), wide, RidgeCrossing, "sme", "memory", "memory bounds sme"},
		{"prefill", MatMul(512, 14336, 4096, 16), wide, ComputeBound, "cpu + sme", "compute", "reach 1.46 of " +
			"the fastest"},
		{"just above the highest ridge", Work{FLOP: 12, Bytes: 1}, wide, ComputeBound, "cpu + sme", "memory",
			"all targets together"},
		{"decode attention", Attention(1, 4096, 0, 32, 8, 128, 16), wide, MemoryBound, "cpu", "memory", "below"},
		{"nothing moves", Work{FLOP: 1e9}, wide, ComputeBound, "cpu + sme", "compute", "no bytes move"},
		{"row-wise", Work{}, Output{}, MemoryBound, "cpu", "compute", "only moves activations"},
		{"one tile", Work{FLOP: 1e9}, Output{Rows: 16, Columns: 48, TileRows: 16, TileColumns: 48}, ComputeBound, "sme",
			"compute", "too few tiles"},
	} {
		p := m4.Place(c.work, c.out)
		if p.Regime != c.regime || p.Target() != c.target || p.Ceiling != c.ceiling || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: intensity %.2f: %v on %s under the %s ceiling: %s; want %v on %s under %s: %s",
				c.name, c.work.Intensity(), p.Regime, p.Target(), p.Ceiling, p.Why, c.regime, c.target, c.ceiling,
				c.why)
		}
	}
	p := m4.Place(Work{FLOP: 1e9}, wide) // 1.85 of 4.77 are 1588 of 4096 columns, the nearest tile ends at 1584
	if got, want := p.SplitText(), "cpu 1584 + sme 2512 (2 drivers) columns"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	tall := m4.Place(Work{FLOP: 1e9}, Output{Rows: 8192, Columns: 4096, TileRows: 16, TileColumns: 48})
	if tall.Divided != "rows" {
		t.Errorf("%s of 8192 rows and 4096 columns", tall.SplitText())
	}
}

// TestCeilingsAreNeverAddedUp checks that targets share an operator only if a measured mixed
// ceiling is higher, and that a unit with too little bandwidth is not used.
func TestCeilingsAreNeverAddedUp(t *testing.T) {
	out := Output{Rows: 512, Columns: 4096}
	for mixed, why := range map[float64]string{0: "not measured", 2.9e12: "not faster"} {
		r := m4
		r.Mixed = mixed
		if p := r.Place(Work{FLOP: 1e9}, out); p.Target() != "sme" || !strings.Contains(p.Why, why) {
			t.Errorf("mixed %g: %s: %s", mixed, p.Target(), p.Why)
		}
	}
	r := m4
	r.Targets = slices.Clone(m4.Targets)
	r.Targets[1].Read = 224e9
	for flop, want := range map[float64]string{7.6: "cpu", 10: "sme"} {
		if p := r.Place(Work{FLOP: flop, Bytes: 1}, out); p.Regime != RidgeCrossing || p.Target() != want {
			t.Errorf("%g FLOP/B: %s: %s", flop, p.Target(), p.Why)
		}
	}
}

// TestClassesShareTheCores checks that classes divide rows by their FLOP/s, or by their bandwidth
// if memory is the bound, and that a class without a whole tile gets none.
func TestClassesShareTheCores(t *testing.T) {
	cores := Target{Name: "avx2/f32", Peak: 400, Parts: []Part{{Class: "performance", Peak: 300, Read: 20},
		{Class: "efficiency", Peak: 100, Read: 20}}}
	r := Ceiling{Bandwidth: 40, Targets: []Target{cores}}
	for _, c := range []struct {
		work Work
		out  Output
		want string
	}{
		{Work{FLOP: 1e6}, Output{Rows: 64, Columns: 1024, TileColumns: 16}, "performance 768 + efficiency 256 columns"},
		{Work{FLOP: 1, Bytes: 1}, Output{Rows: 1, Columns: 1024, TileColumns: 16},
			"performance 512 + efficiency 512 columns"},
		{Work{FLOP: 1e6}, Output{Rows: 4, Columns: 32, TileColumns: 32}, ""},
	} {
		if got := r.Place(c.work, c.out).SplitText(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.out, got, c.want)
		}
	}
}

func TestMatMulWork(t *testing.T) {
	w := MatMul(2, 3, 32, 8.5)
	if w.FLOP != 2*2*3*32 || w.Bytes != 3*34+2*32*4+2*3*4 {
		t.Errorf("MatMul(2,3,32,q8_0) = %+v", w)
	}
	if got := w.Add(w); got.FLOP != 2*w.FLOP || got.Bytes != 2*w.Bytes {
		t.Errorf("twice %+v = %+v", w, got)
	}
}

// TestAttentionSeesItsWindow counts the pairs and the positions one by one.
func TestAttentionSeesItsWindow(t *testing.T) {
	for rows := 1; rows < 9; rows++ {
		for context := rows; context < 20; context++ {
			for window := range 24 {
				pairs, first := 0, context
				for at := context - rows; at < context; at++ {
					from := 0
					if window > 0 {
						from = max(0, at+1-window)
					}
					pairs, first = pairs+at+1-from, min(first, from)
				}
				want := Work{FLOP: float64(4 * pairs * 6 * 8), Bytes: float64(2 * (context - first) * 2 * 8 * 4)}
				if got := Attention(rows, context, window, 6, 2, 8, 32); got != want {
					t.Fatalf("%d rows of %d, window %d: %+v, want %+v", rows, context, window, got, want)
				}
			}
		}
	}
}

func TestSecondsMeetAtTheRidge(t *testing.T) {
	cpu := m4.Targets[0]
	ridge := m4.Ridge(cpu)
	w := Work{FLOP: ridge * 1e9, Bytes: 1e9}
	if got, want := m4.Seconds(cpu, w), 1e9/247e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("at the ridge: %v s, want %v", got, want)
	}
	half := Work{FLOP: w.FLOP / 2, Bytes: w.Bytes}
	if got, want := m4.Seconds(cpu, half), 1e9/247e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("below the ridge: %v s, want %v", got, want)
	}
}

// TestReach checks that three steps of known shares of the ceilings give these shares, on both
// sides of the ridge.
func TestReach(t *testing.T) {
	p := Limits{Peak: 1e12, Read: 2e10}
	step := func(m float64) Step {
		tiles := math.Ceil(m / 8)
		if m > 64 {
			tiles = 1 // widened
		}
		return Step{Work: Work{FLOP: 2e7 * m, Bytes: 1e7}, Unpacked: 1e7 * tiles}
	}
	for _, want := range []Efficiency{{0.9, 0.8, 4, 0}, {0.5, 1, 0, 0}, {0.8, 0.6, 12, 0}} {
		anchor := func(m float64) Anchor { return Anchor{step(m), p.Seconds(step(m), want)} }
		got, err := FitEfficiency(p, anchor(1), anchor(32), anchor(512))
		if err != nil || math.Abs(got.Peak/want.Peak-1) > 1e-3 || math.Abs(got.Read/want.Read-1) > 1e-3 ||
			math.Abs(got.Unpack-want.Unpack) > 0.05 {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		if two, err := FitEfficiency(p, anchor(1), Anchor{}, anchor(512)); err != nil || two.Unpack != 0 {
			t.Errorf("two anchors: %+v, %v", two, err)
		}
		if _, err := FitEfficiency(p, anchor(512), anchor(32), anchor(1)); err == nil {
			t.Error("anchors in the wrong order were accepted")
		}
		if _, err := FitEfficiency(p, anchor(1), anchor(32), Anchor{Step: step(512)}); err == nil {
			t.Error("an anchor without a time was accepted")
		}
	}
	if n, _ := FitEfficiency(p, Anchor{step(1), 1e-9}, Anchor{}, Anchor{step(512), 1e-9}); n.Peak > 1.5 ||
		n.Read > 1.5 {
		t.Errorf("faster than any ceiling: %+v", n)
	}
}

// TestFitOfDisturbedAnchors checks that a disturbed anchor of few rows does not change the
// predictions of the other two anchors.
func TestFitOfDisturbedAnchors(t *testing.T) {
	p, want := Limits{Peak: 1e12, Read: 2e10}, Efficiency{0.8, 0.6, 4, 0}
	anchor := func(m, times float64) Anchor {
		s := Step{Work: Work{FLOP: 2e7 * m, Bytes: 1e7}, Unpacked: 1e7 * math.Ceil(m/14)}
		return Anchor{s, times * p.Seconds(s, want)}
	}
	n, err := FitEfficiency(p, anchor(1, 1), anchor(32, 3), anchor(512, 1))
	if err != nil || n.Peak > 1.001 {
		t.Errorf("%+v, %v", n, err)
	}
	for _, m := range []float64{1, 512} {
		if got := p.Seconds(anchor(m, 1).Step, n) / anchor(m, 1).Seconds; math.Abs(got-1) > 0.05 {
			t.Errorf("with %g rows %.2f times the anchor, by %+v", m, got, n)
		}
	}
}

// TestReachAlone checks that an anchor on one PU gives its share, which bounds few PUs and does not
// affect sets that memory bounds.
func TestReachAlone(t *testing.T) {
	want := Efficiency{Peak: 0.9, Read: 1.2, Alone: 0.7}
	step := Step{Work: Work{FLOP: 2e7, Bytes: 1e7}}
	on := func(pus float64) Limits {
		return Limits{Peak: 1e12 * pus, Read: math.Min(3.5e10, 3e10*pus), Alone: 3e10 * pus}
	}
	one := on(1)
	near := Efficiency{Peak: 0.9, Read: 1.2}
	near.Alone = FitAlone(one, near, Anchor{step, one.Seconds(step, want)})
	if math.Abs(near.Alone-0.7) > 1e-3 {
		t.Errorf("the anchor of one PU says %g", near.Alone)
	}
	for pus, rate := range map[float64]float64{1: 2.1e10, 2: 4.2e10, 8: 4.2e10} {
		if got := 1e7 / on(pus).Seconds(step, near); math.Abs(got/rate-1) > 0.01 {
			t.Errorf("%g PUs read %g B/s, want %g", pus, got, rate)
		}
	}
	if got := FitAlone(one, near, Anchor{Step: step}); got != 0 {
		t.Errorf("without a time it is %g", got)
	}
}

// TestActivationsLieInTheCachesThatHoldThem checks that activations count at the bandwidths of the
// caches that hold them, each for its part, and cost nothing if no cache is known.
func TestActivationsLieInTheCachesThatHoldThem(t *testing.T) {
	p := Limits{Peak: 1, Read: 1, Caches: []Cache{{100, 50}, {1000, 10}, {math.Inf(1), 1}}}
	for _, c := range []struct{ touched, want float64 }{{0, 2}, {100, 2}, {200, 6}, {2000, 0.1 + 4.5 + 50}} {
		if got := p.Seconds(Step{Moved: 100, Touched: c.touched}, Efficiency{1, 1, 0,
			0}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%g bytes touched: %g s, want %g", c.touched, got, c.want)
		}
	}
	if got := (Limits{Peak: 1, Read: 1}).Seconds(Step{Moved: 100}, Efficiency{1, 1, 0, 0}); got != 0 {
		t.Errorf("without caches: %g s", got)
	}
}
