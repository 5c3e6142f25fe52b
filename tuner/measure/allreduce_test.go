package measure

import (
	"slices"
	"testing"

	"sandwich/profiles"
)

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
				PUs: ReduceWorkers(host.CorePUs().Slice(), ranks, ranks+1)}
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
