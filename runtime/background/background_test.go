package background

import (
	"fmt"
	"testing"
)

// recorder notes the order of the calls.
type recorder struct {
	text      string
	preempted map[int]bool // by the number of the call
	calls     int
}

func (r *recorder) Acquire() { r.text += "(" }
func (r *recorder) Release() { r.text += ")" }
func (r *recorder) Preempted() bool {
	r.calls++
	return r.preempted[r.calls]
}

// TestRun checks that pieces run with the cores, which are given to other users only where they
// wait.
func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		n         int
		preempted map[int]bool
		want      string
	}{
		"one":           {1, nil, "(0)"},
		"no other user": {3, nil, "(012)"},
		"in between":    {4, map[int]bool{2: true}, "(01)(23)"},
		"always":        {3, map[int]bool{1: true, 2: true, 3: true}, "(0)(1)(2)"},
	} {
		r := &recorder{preempted: c.preempted}
		i := 0
		In(r).Do(func() bool {
			r.text += fmt.Sprint(i)
			i++
			return i < c.n
		})
		if r.text != c.want {
			t.Errorf("%s: %s, want %s", name, r.text, c.want)
		}
	}
	r := &recorder{}
	In(r).Once(func() { r.text += "x" })
	func() {
		defer func() { recover() }()
		In(r).Once(func() { panic("y") })
	}()
	if r.text != "(x)()" {
		t.Errorf("single pieces: %s", r.text)
	}
	var order []int
	Run(nil).Do(func() bool {
		order = append(order, len(order))
		return len(order) < 3
	})
	if fmt.Sprint(order) != "[0 1 2]" {
		t.Errorf("without other users: %v", order)
	}
}
