package evidence

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"sandwich/plans"
)

// TestStepCurvesOfRace checks times that follow from the samples of a race.
func TestStepCurvesOfRace(t *testing.T) {
	e := Evidence{Finalists: []Arm{
		{Name: "decode, default", Test: "tg batch 1", Samples: []float64{1}},
		{Name: "decode, winner: fast", Test: "tg batch 1", Samples: []float64{9, 10, 11}},
		{Name: "prefill, winner: fast", Test: "pp512", Samples: []float64{500}},
		{Name: "decode, winner: fast", Test: "tg batch 4", Samples: []float64{40, 39, 41}},
		{Name: "decode, winner: fast", Test: "tg batch 8, 2 of 4 layers", Samples: []float64{40}},
	}}
	got := e.StepCurves(10, nil)
	if len(got) != 1 || got[0].Positions != 128 || !slices.Equal(got[0].Measured, []int{1, 4, 8}) {
		t.Fatalf("%+v", got)
	}
	for i, want := range []float64{1, 1, 1, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5} {
		if math.Abs(got[0].Ratios[i]-want) > 1e-9 {
			t.Errorf("%d rows: ratio %g, want %g", i+1, got[0].Ratios[i], want)
		}
	}
	for _, bad := range []Evidence{{}, {Finalists: e.Finalists[:2]}, {Finalists: e.Finalists[2:]},
		{Finalists: []Arm{{Name: "decode, winner: x", Test: "tg batch 1", Samples: []float64{0}},
			{Name: "decode, winner: x", Test: "tg batch 4"}, {Name: "decode, winner: x", Test: "tg batch -3"},
			{Name: "decode, winner: x", Test: "tg batch 999999999", Samples: []float64{1}}}}} {
		if got := bad.StepCurves(4, nil); got != nil {
			t.Errorf("%+v: %v", bad.Finalists, got)
		}
	}
}

// TestStepCurves checks measured times: at each context length, relative to one row at the first,
// interpolated by rows or, for a mixture of experts, by distinct experts.
func TestStepCurves(t *testing.T) {
	e := Evidence{Steps: []Steps{{Positions: 128, Seconds: []float64{2, 0, 4, 5}},
		{Positions: 500, Seconds: []float64{3}}, {Positions: 2048, Seconds: []float64{4, 5, 6}}}}
	got := e.StepCurves(4, &plans.ModelShape{})
	want := []StepCurve{{128, []float64{1, 1.5, 2, 2.5}, []int{1, 3, 4}},
		{2048, []float64{2, 2.5, 3, 3.5}, []int{1, 2, 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := e.StepCurves(2, nil); !slices.Equal(got[0].Measured, []int{1}) || got[0].Ratios[1] != 1.5 {
		t.Errorf("two rows: %+v", got)
	}
	routed := e.StepCurves(4, &plans.ModelShape{Experts: 8, ExpertsUsed: 4})[0].Ratios
	if want := 1 + (6-4)/(7.0-4); math.Abs(routed[1]-want) > 1e-9 {
		t.Errorf("two rows of a mixture take %g, want %g", routed[1], want)
	}
	if err := checkSteps(e.Steps); err != nil {
		t.Error(err)
	}
}

// TestCheckSteps checks that damaged times are rejected.
func TestCheckSteps(t *testing.T) {
	for name, bad := range map[string][]Steps{
		"negative positions": {{Positions: -1, Seconds: []float64{1}}},
		"descending":         {{Positions: 2, Seconds: []float64{1}}, {Positions: 2, Seconds: []float64{1}}},
		"no times":           {{Positions: 2}},
		"no single row":      {{Positions: 2, Seconds: []float64{0, 1}}},
		"infinite":           {{Positions: 2, Seconds: []float64{math.Inf(1)}}},
		"negative":           {{Positions: 2, Seconds: []float64{1, -1}}},
		"not a number":       {{Positions: 2, Seconds: []float64{1, math.NaN()}}},
		"too many":           make([]Steps, maxStepTables+1),
		"too many rows":      {{Positions: 2, Seconds: make([]float64, maxStepRows+1)}},
	} {
		if checkSteps(bad) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestExpectedSpeeds compares with values computed by hand.
func TestExpectedSpeeds(t *testing.T) {
	for _, x := range ExpectedSpeeds([]float64{2, 2.5, 8}) {
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
