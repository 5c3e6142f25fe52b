package measure

import (
	"slices"
	"testing"

	"sandwich/profiles"
)

// TestSummarize checks that the median of an even number of samples is between two of them, and
// that percentiles are samples.
func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, 3, 3}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4, 1, 4}},
		{[]float64{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}, Spread{5.5, 1, 10, 2, 10}},
	} {
		before := slices.Clone(c.samples)
		if got := Summarize(c.samples); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.samples, got, c.want)
		}
		if !slices.Equal(before, c.samples) {
			t.Errorf("%v were sorted in place", before)
		}
	}
}

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

// TestAllReduce checks that every way has the sum of a plain loop (otherwise AllReduce fails), also
// if ranks share PUs and a matrix has fewer rows than a rank has workers.
func TestAllReduce(t *testing.T) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{1, 77}, {40, 257}, {3, 16}} {
		for _, ranks := range []int{1, 2, 3} {
			o := AllReduceOptions{Rows: size[0], Width: size[1], Ranks: ranks, Chunk: 256, Reps: 2,
				PUs: ReduceWorkers(host.CorePUs(), ranks, ranks+1)}
			rows, err := AllReduce(t.Context(), host, o)
			if err != nil || len(rows) != len(reduceArms) {
				t.Fatalf("%v, %d ranks: %d rows, %v", size, ranks, len(rows), err)
			}
			for _, r := range rows {
				if r.Reps != 2 || r.Threads != ranks+1 || r.Median <= 0 || r.Min > r.Median {
					t.Errorf("%+v", r)
				}
			}
		}
	}
	if got := RanksUpTo(6); !slices.Equal(got, []int{2, 4, 6}) {
		t.Errorf("ranks up to 6 PUs: %v", got)
	}
	if got := RanksUpTo(1); !slices.Equal(got, []int{2}) {
		t.Errorf("ranks on one PU: %v", got)
	}
}
