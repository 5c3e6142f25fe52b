package roofline

import (
	"math"
	"testing"
)

// m4 is the machine of SMEPilot figure 3: 8 CPU workers 1.85, 2 SME units 2.92 TFLOP/s, 247 GB/s
// shared.
var m4 = Roof{Bandwidth: 247e9, Targets: []Target{{"cpu", 1.85e12}, {"sme", 2.92e12}}}

func TestRegimesOfSMEPilot(t *testing.T) {
	for _, c := range []struct {
		name    string
		work    Work
		regime  Regime
		targets int
		first   string
		roof    string
	}{
		{"decode gemv", MatMul(1, 4096, 4096, 16), MemoryBound, 1, "cpu", "memory"},
		{"batched decode", MatMul(10, 4096, 4096, 16), RidgeCrossing, 1, "sme", "memory"},
		{"prefill", MatMul(512, 14336, 4096, 16), ComputeBound, 2, "cpu", "compute"},
		{"just above the highest ridge", Work{FLOP: 12, Bytes: 1}, ComputeBound, 2, "cpu", "memory"},
		{"decode attention", Attention(1, 4096, 0, 32, 8, 128, 16), MemoryBound, 1, "cpu", "memory"},
		{"nothing moves", Work{FLOP: 1e9}, ComputeBound, 2, "cpu", "compute"},
	} {
		p := m4.Place(c.work)
		if p.Regime != c.regime || len(p.Targets) != c.targets || p.Targets[0].Name != c.first || p.Roof != c.roof {
			t.Errorf("%s: intensity %.2f: %v on %v under the %s roof, want %v on %d from %s under %s",
				c.name, c.work.Intensity(), p.Regime, p.Targets, p.Roof, c.regime, c.targets, c.first, c.roof)
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

func TestCalibrate(t *testing.T) {
	mem, comp := Anchor{Intensity: 1, Utilization: 0.8}, Anchor{Intensity: 50, Utilization: 0.1}
	p, b, err := Calibrate(1e12, 1e11, mem, comp)
	if err != nil || math.Abs(b-8e10) > 1 || math.Abs(p-5e11) > 1 {
		t.Fatalf("P %v B %v %v", p, b, err)
	}
	if p, _, _ := Calibrate(1e11, 1e11, mem, comp); p != 1e11 {
		t.Errorf("P_eff %v is not clipped to the peak", p)
	}
	// The closed form (7) agrees with the roof built from the effective ceilings on both sides of
	// the knee (4).
	for _, i := range []float64{0.5, 6.24, 6.26, 100} {
		got := Utilization(i, mem, comp) * 1e11
		if want := math.Min(b, p/i); math.Abs(got-want) > 1 {
			t.Errorf("I=%v: %v B/s, want %v", i, got, want)
		}
	}
	for _, bad := range [][2]Anchor{{{1, 0}, comp}, {{1, 1.1}, comp}, {{1, math.NaN()}, comp}, {comp, mem},
		{{0, 0.5}, comp}} {
		if _, _, err := Calibrate(1e12, 1e11, bad[0], bad[1]); err == nil {
			t.Errorf("anchors %v were accepted", bad)
		}
	}
}
