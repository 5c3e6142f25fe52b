package session

import (
	"testing"

	"sandwich/plans"
	"sandwich/runtime/engine/forward"
)

// What a machine of two nodes would show, one of which had no room for a half of a rank's weights.
var twoNodes = []forward.Placement{
	{Rank: 0, What: "weights", Node: 0, Bytes: 2 << 30, On: map[int]int64{0: 2 << 30}},
	{Rank: 0, What: "kv", Node: 0, Bytes: 1 << 30, On: map[int]int64{0: 1 << 30}},
	{Rank: 1, What: "weights", Node: 1, Bytes: 2 << 30, On: map[int]int64{0: 1 << 30, 1: 1 << 30}, Remote: 0.5,
		Misplaced: true, Moved: 4096},
}

// A session that loads its model twice, as generate --logits does, tells once what its node had no
// room for.
func TestMisplacedMemoryIsReportedOnce(t *testing.T) {
	s := &Session{Plan: &plans.Plan{}}
	other := append(twoNodes[:len(twoNodes):len(twoNodes)], forward.Placement{Rank: 1, What: "kv", Node: 1,
		Remote: 1, Misplaced: true})
	for i, load := range []struct {
		plan   *plans.Plan
		places []forward.Placement
		notes  int
	}{{s.Plan, twoNodes, 1}, {s.Plan, twoNodes, 0}, {s.Plan, other, 1}, {&plans.Plan{}, other, 2}} {
		s.Plan = load.plan
		if notes := s.newlyMisplaced(load.places); len(notes) != load.notes {
			t.Errorf("load %d: notes %q, want %d", i, notes, load.notes)
		}
	}
}
