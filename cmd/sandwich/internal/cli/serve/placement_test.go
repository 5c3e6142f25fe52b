package serve

import (
	"strings"
	"testing"

	"sandwich/runtime/engine/forward"
)

// twoNodes is the placement on a machine of two nodes, one of which lacked room for half of the
// weights of a rank.
var twoNodes = []forward.Placement{
	{Rank: 0, What: "weights", Node: 0, Bytes: 2 << 30, On: map[int]int64{0: 2 << 30}},
	{Rank: 0, What: "kv", Node: 0, Bytes: 1 << 30, On: map[int]int64{0: 1 << 30}},
	{Rank: 1, What: "weights", Node: 1, Bytes: 2 << 30, On: map[int]int64{0: 1 << 30, 1: 1 << 30}, Remote: 0.5,
		Misplaced: true, Moved: 4096},
}

func TestPlacementReport(t *testing.T) {
	var b strings.Builder
	printPlacement(&b, twoNodes)
	want := `rank 0 on node 0: weights node 0 2.0 GiB, 0.0 % remote; kv node 0 1.0 GiB, 0.0 % remote
rank 1 on node 1: weights node 0 1.0 GiB, node 1 1.0 GiB, 50.0 % remote
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	notes := forward.MisplacedNotes(twoNodes)
	if len(notes) != 1 || !strings.Contains(notes[0], "50 % of the weights of rank 1 (2.0 GiB) are not on node 1") {
		t.Errorf("notes %q", notes)
	}
}
