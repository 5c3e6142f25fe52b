package llm

import (
	"testing"
)

// TestTests checks that lengths of 0 are omitted, and that the largest test determines the cache
// size.
func TestTests(t *testing.T) {
	tests := Tests([]int{0, 100}, []int{10, 0}, nil, 3)
	if len(tests) != 2 || tests[0] != (Test{"pp100", true, 100, 1, 0}) || tests[1] != (Test{"tg10", false, 10, 3, 0}) {
		t.Fatalf("%+v", tests)
	}
	if got := Positions(tests); got != 192 { // three blocks of 64 for three sequences, two for the prompt
		t.Errorf("%d positions", got)
	}
	deep := Tests([]int{0, 100}, []int{10, 0}, []int{0, 120}, 3)
	if len(deep) != 4 || deep[2] != (Test{"pp100 @ d120", true, 100, 1, 120}) ||
		deep[3] != (Test{"tg10 @ d120", false, 10, 3, 120}) {
		t.Fatalf("%+v", deep)
	}
	if got := Positions(deep); got != 576 { // 130 positions are three blocks
		t.Errorf("%d positions", got)
	}
	if got := deep[2].forwards(64); len(got) != 2 || got[0].Spans[0].Pos != 120 || got[1].Spans[0].Pos != 184 ||
		got[1].Spans[0].N != 36 {
		t.Errorf("%+v", got)
	}
}
