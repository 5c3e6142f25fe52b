package conversation

import "testing"

// TestOpenCalls checks that the calls without a result are bounded and still found by id.
func TestOpenCalls(t *testing.T) {
	var x callIndex
	for range 3 * maxOpen {
		x.add("", "f", 0)
	}
	if len(x.open) != maxOpen || x.made != 3*maxOpen {
		t.Errorf("%d calls without a result are kept of %d", len(x.open), x.made)
	}
	if c, known := x.answered("000000001", ""); !known || c.id != "000000001" || c.name != "f" {
		t.Errorf("%+v, %v", c, known)
	}
}
