package drafting

import (
	"slices"
	"testing"

	"sandwich/runtime/sched"
	"sandwich/runtime/speculate"
)

// TestPropose checks that a draft begins with the tokens that were sent and are not computed yet,
// and that proposed tokens follow up to the limit.
func TestPropose(t *testing.T) {
	d := New(Options{Drafter: speculate.NewNGram(1 << 20)}, []speculate.Curve{{Times: []float64{1, 1, 1, 1, 1}}}, false)
	var r Request
	d.Open(&r, [32]byte{}, []int32{7, 1, 2, 3, 4, 5, 6, 7})
	for _, id := range []int32{1, 2} {
		r.Send(id)
	}
	for _, c := range []struct {
		take, max int
		certain   int
		want      []int32
	}{
		{0, 9, 2, []int32{1, 2, 3, 4, 5, 6}},
		{1, 1, 1, []int32{2, 3}},
		{1, 0, 0, nil},
		{0, -4, 0, nil},
	} {
		for range c.take {
			r.Take()
		}
		var e sched.Event
		d.Propose(&r, &e, c.max)
		if e.Certain != c.certain || !slices.Equal(e.Draft, c.want) || r.Waiting() != c.certain {
			t.Errorf("at most %d: %d certain tokens of %v, want %d of %v", c.max, e.Certain, e.Draft, c.certain,
				c.want)
		}
	}
	d.Verified(&r, 4, 3, 2)
	d.Verified(&r, 0, 0, 0)
	if r.Drafted != 4 || r.Accepted != 2 || d.Counts()[0].Drafted != 4 || d.Counts()[0].Accepted != 2 {
		t.Errorf("%+v, %+v", r, d.Counts())
	}
	if d.Counts()[0].Bytes == 0 {
		t.Error("the drafter uses no memory")
	}
	r.Close()
	if New(Options{}, []speculate.Curve{{Times: []float64{1}}}, false).Counts() != nil {
		t.Error("there are counts without a drafter")
	}
}

// TestContinued checks that predicted times continue measured ones.
func TestContinued(t *testing.T) {
	for _, c := range []struct{ measured, want []float64 }{
		{[]float64{1, 1.5}, []float64{1, 1.5, 2.25}},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1}},
	} {
		predicted := []float64{1, 2, 3}
		if got := continued(c.measured, predicted); !slices.Equal(got, c.want) || predicted[2] != 3 {
			t.Errorf("measured %v: %v, want %v", c.measured, got, c.want)
		}
	}
	curves := []speculate.Curve{{Positions: 1, Times: []float64{1, 1}}, {Positions: 9, Times: []float64{2, 2}}}
	d := New(Options{Curves: curves}, []speculate.Curve{{Times: []float64{1, 2, 3}}}, false)
	if d.Rows() != 3 {
		t.Errorf("%d rows, want those of the prediction", d.Rows())
	}
}
