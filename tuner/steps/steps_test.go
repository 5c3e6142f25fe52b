package steps

import (
	"reflect"
	"slices"
	"testing"

	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
	"sandwich/tuner/arms"
	"sandwich/tuner/rig"
)

// TestOrder checks that every number of rows occurs once, and which come first.
func TestOrder(t *testing.T) {
	for limit := 1; limit <= 40; limit++ {
		got := order(limit)
		if n := len(got); n != limit || slices.Max(got) != limit || slices.Min(got) != 1 {
			t.Errorf("%d: %v", limit, got)
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != limit {
			t.Errorf("%d: numbers occur twice", limit)
		}
	}
	if got := order(16)[:9]; !slices.Equal(got, []int{1, 16, 8, 4, 12, 2, 6, 10, 14}) {
		t.Errorf("%v", got)
	}
}

// TestTables checks the medians, numbers of rows without samples, and context lengths without a
// step of one row.
func TestTables(t *testing.T) {
	step := func(rows, depth int) rig.Test { return rig.Test{Phase: phase.Decode, N: rows, Depth: depth} }
	m := &measurement{race: &arms.Race{Tests: []rig.Test{step(1, 128), step(4, 128), step(2, 128), step(1, 2048),
		step(4, 2048)}}, sampled: [][]float64{{1, 3, 2}, {5}, nil, {4}, {6, 7}}}
	want := []evidence.Steps{{Positions: 128, Seconds: []float64{2, 0, 0, 5}},
		{Positions: 2048, Seconds: []float64{4, 0, 0, 6.5}}}
	if got := m.tables(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !m.attends(3) {
		t.Error("a step at the longer context takes twice as long and is not measured")
	}
	m.sampled[3] = []float64{2.05}
	if m.attends(3) {
		t.Error("attention takes no time and is measured")
	}
	m.sampled[3] = nil
	if got := m.tables(); len(got) != 1 {
		t.Errorf("without one row at the longer context: %+v", got)
	}
	m.sampled = make([][]float64, 5)
	m.sampled[0] = []float64{1}
	if got := m.tables(); len(got) != 0 {
		t.Errorf("one row alone: %+v", got)
	}
}
