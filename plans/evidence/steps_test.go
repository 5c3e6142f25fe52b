package evidence

import (
	"math"
	"testing"
)

// TestStepRatios checks ratios from the samples of a race.
func TestStepRatios(t *testing.T) {
	e := Evidence{Finalists: []Arm{
		{Name: "decode, default", Test: "tg batch 1", Samples: []float64{1}},
		{Name: "decode, winner: fast", Test: "tg batch 1", Samples: []float64{9, 10, 11}},
		{Name: "prefill, winner: fast", Test: "pp512", Samples: []float64{500}},
		{Name: "decode, winner: fast", Test: "tg batch 4", Samples: []float64{40, 39, 41}},
		{Name: "decode, winner: fast", Test: "tg batch 8", Samples: []float64{40}},
	}}
	got := e.StepRatios(10)
	for i, want := range []float64{1, 1, 1, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5} {
		if math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("%d rows: ratio %g, want %g", i+1, got[i], want)
		}
	}
	for _, bad := range []Evidence{{}, {Finalists: e.Finalists[:2]}, {Finalists: e.Finalists[2:]},
		{Finalists: []Arm{{Name: "decode, winner: x", Test: "tg batch 1", Samples: []float64{0}},
			{Name: "decode, winner: x", Test: "tg batch 4"}, {Name: "decode, winner: x", Test: "tg batch -3"}}}} {
		if got := bad.StepRatios(4); got != nil {
			t.Errorf("%+v: ratios %v", bad.Finalists, got)
		}
	}
}

// TestExpectedSpeeds compares with values computed by hand.
func TestExpectedSpeeds(t *testing.T) {
	for _, x := range ExpectedSpeeds([]float64{1, 1.25, 4}) {
		want := Expected{x.Acceptance, 1, (1 + x.Acceptance) / 1.25}
		if x.Depth != want.Depth || math.Abs(x.Speed-want.Speed) > 1e-9 {
			t.Errorf("%+v, want %+v", x, want)
		}
	}
	if x := ExpectedSpeeds([]float64{1, 2}); x[3] != (Expected{0.9, 0, 1}) {
		t.Errorf("%+v", x)
	}
	if x := ExpectedSpeeds(nil); x != nil {
		t.Errorf("%+v", x)
	}
}
