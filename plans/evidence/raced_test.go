package evidence

import "testing"

// TestRaced checks which arms count as measured.
func TestRaced(t *testing.T) {
	e := Evidence{Finalists: []Arm{{Name: "prefill, on device a:0"}, {Name: "decode, default"}},
		Rejected: []Rejected{{"prefill, on device b:0", SlowerReason(3)},
			{"prefill, on device c:0", "the first pp512 took more than 4s"}, {"device d:0", "no kernel"}}}
	for id, want := range map[string]bool{"a:0": true, "b:0": true, "c:0": false, "d:0": false, "e:0": false} {
		if got := e.Raced("on device " + id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}
