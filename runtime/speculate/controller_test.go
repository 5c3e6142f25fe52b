package speculate

import (
	"math"
	"slices"
	"testing"

	"sandwich/runtime/sched"
)

// linear returns the ratios of steps whose time grows by a part of the first row for each row.
func linear(rows int, each float64) []float64 {
	list := make([]float64, rows)
	for i := range list {
		list[i] = 1 + each*float64(i)
	}
	return list
}

func rowsOf(list []sched.Draft) (rows []int) {
	for _, d := range list {
		rows = append(rows, d.Rows)
	}
	return rows
}

func TestAllot(t *testing.T) {
	for _, c := range []struct {
		name   string
		ratios []float64
		depth  int
		free   int
		drafts []sched.Draft
		want   []int
		again  bool
	}{
		{"rows are free", linear(16, 0), 0, 15, []sched.Draft{{Tokens: 4, Chance: 0.9}}, []int{4}, false},
		{"rows cost as much as steps", linear(16, 1), 0, 15, []sched.Draft{{Tokens: 4, Chance: 0.9}}, []int{0}, false},
		{"largest gain", linear(16, 0.25), 0, 15, []sched.Draft{{Tokens: 15, Chance: 0.8}}, []int{3}, false},
		{"gain below 2 %", linear(16, 0.1), 0, 15, []sched.Draft{{Tokens: 9, Chance: 0.11}}, []int{0}, false},
		{"more rows are not faster", linear(16, -0.05), 0, 15,
			[]sched.Draft{{Tokens: 9, Chance: 0.015}}, []int{0}, false},
		{"the likelier draft first", linear(4, 0.01), 0, 2,
			[]sched.Draft{{Tokens: 3, Chance: 0.5}, {Tokens: 3, Chance: 0.9}}, []int{0, 2}, false},
		{"shared by chance", linear(8, 0.01), 0, 3,
			[]sched.Draft{{Tokens: 3, Chance: 0.7}, {Tokens: 3, Chance: 0.8}}, []int{1, 2}, false},
		{"certain tokens first", linear(8, 1), 0, 3,
			[]sched.Draft{{Tokens: 3, Chance: 0.9}, {Tokens: 3, Certain: 3}}, []int{0, 3}, false},
		{"drafts after certain tokens", linear(8, 0.01), 0, 7,
			[]sched.Draft{{Tokens: 5, Certain: 2, Chance: 0.9}}, []int{5}, false},
		{"no certain row left", linear(8, 0.01), 0, 1,
			[]sched.Draft{{Tokens: 5, Certain: 3, Chance: 0.9}}, []int{1}, false},
		{"fixed depth", linear(8, 1), 2, 7,
			[]sched.Draft{{Tokens: 5}, {Tokens: 1}, {Tokens: 5}}, []int{2, 1, 2}, false},
		{"depth beyond the rows", linear(4, 1), 100, 99, []sched.Draft{{Tokens: 50}, {Tokens: 50}}, []int{2, 0}, false},
		{"no rows", linear(1, 1), 0, 99,
			[]sched.Draft{{Tokens: 5, Chance: 1}, {Tokens: 5, Chance: 1}}, []int{0, 0}, false},
		{"likely tokens", linear(16, 0.25), 0, 15, []sched.Draft{{Tokens: 15, Chance: 0.9}}, []int{6}, false},
		{"tokens computed again", linear(16, 0.25), 0, 15, []sched.Draft{{Tokens: 15, Chance: 0.9}}, []int{4}, true},
		{"no drafts", linear(8, 0), 0, 7, []sched.Draft{{}, {}}, []int{0, 0}, false},
	} {
		of := NewController(oneCurve(c.ratios), c.depth, c.again)
		for rows := range len(c.ratios) { // as the prior says
			for range minSteps {
				of.Stepped(rows+1, 0, c.ratios[rows]/1000)
			}
		}
		of.saved = 0
		of.Allot(c.drafts, c.free)
		if got := rowsOf(c.drafts); !slices.Equal(got, c.want) {
			t.Errorf("%s: rows %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMeasuredTimesReplacePriors checks that a wrong prior loses to measured steps, by context, and
// that at most twice the measured rows are used.
func TestMeasuredTimesReplacePriors(t *testing.T) {
	c := NewController(oneCurve(linear(8, 0.01)), 0, false)
	for range 20 {
		c.Stepped(1, 100, 0.010)
		c.Stepped(2, 200, 0.019)
		c.Stepped(1, 100_000, 0.030)
		c.Stepped(2, 200_000, 0.031)
	}
	c.saved = 0
	for _, want := range []struct{ context, rows int }{{100, 0}, {100_000, 3}} {
		list := []sched.Draft{{Known: want.context, Tokens: 7, Chance: 0.8}}
		if c.Allot(list, 7); list[0].Rows != want.rows {
			t.Errorf("%d rows are drafted at %d tokens of context, want %d", list[0].Rows, want.context, want.rows)
		}
	}
}

// oneCurve returns the times of steps at any context length.
func oneCurve(times []float64) []Curve { return []Curve{{Times: times}} }

// TestPriorByContext checks the times of steps that follow from curves at two context lengths
// before any step is measured, and after steps were measured at another length.
func TestPriorByContext(t *testing.T) {
	s := newStepTimes([]Curve{{Positions: 128, Times: []float64{2, 3}}, {Positions: 2176, Times: []float64{4, 9}}})
	for _, c := range []struct {
		rows, context int
		want          float64
	}{{1, 0, 1}, {2, 511, 3.375 / 2.125}, {1, 512, (2 + 7.0/8) / 2.125}, {2, 512, (3 + 2.625) / 2.125},
		{2, 3000, (3 + 6*3968.0/2048) / 2.125}} {
		if got := s.time(c.rows, c.context); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d rows at %d positions: %g, want %g", c.rows, c.context, got, c.want)
		}
	}
	for range minSteps {
		s.observe(1, 100, 0.010)
	}
	if got, want := s.time(2, 512), 0.010*5.625/2.125; math.Abs(got-want) > 1e-9 {
		t.Errorf("%g s at a context without measured steps, want %g", got, want)
	}
}

// TestMeasuredCurves checks that drafts use all rows from the start if their times were measured,
// and twice the rows of measured steps otherwise.
func TestMeasuredCurves(t *testing.T) {
	for measured, want := range map[bool]int{false: 1, true: 15} {
		c := NewController([]Curve{{Times: linear(16, 0.01), Measured: measured}}, 0, false)
		for range minSteps {
			c.Stepped(1, 10, 0.01)
		}
		list := []sched.Draft{{Known: 10, Tokens: 15, Chance: 0.99}}
		if c.Allot(list, 15); list[0].Rows != want {
			t.Errorf("measured %v: %d rows, want %d", measured, list[0].Rows, want)
		}
	}
}

// TestFitted checks that times of more rows are not below those of fewer: adjacent times in the
// wrong order are replaced by their mean, weighted by the numbers of steps.
func TestFitted(t *testing.T) {
	s := newStepTimes(oneCurve([]float64{1, 1, 1, 1, 1, 2}))
	for rows, x := range map[int]struct {
		steps int
		time  float64
	}{1: {3, 1}, 2: {3, 4}, 3: {9, 2}, 4: {6, 3}, 5: {6, 2.7}} {
		s.lengths[0][rows-1] = stepTime{x.time, x.steps}
	}
	s.factor = 10
	want := []float64{10, 25, 25, 28.5, 28.5}
	got := s.fitted(nil, 0)
	if len(got) != 6 || got[5] < got[4] {
		t.Fatalf("%v", got)
	}
	for i, x := range want {
		if math.Abs(got[i]-x) > 1e-9 {
			t.Errorf("%d rows: %g, want %g", i+1, got[i], x)
		}
	}
}
