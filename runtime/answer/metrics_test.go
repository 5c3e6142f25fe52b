package answer

import (
	"testing"

	"sandwich/runtime/engine"
	"sandwich/runtime/mem"
)

// TestPlacementMetrics uses a machine of two nodes, one of which lacked memory for half of a rank's
// weights.
func TestPlacementMetrics(t *testing.T) {
	places := append([]engine.Placement{
		{Rank: 0, What: "weights", Node: 0},
		{Rank: 0, What: "kv", Node: 0},
		{Rank: 1, What: "weights", Node: 1, Remote: 0.5, Misplaced: true, Moved: 4096},
	}, engine.Placement{Rank: 2, What: "weights",
		Node: mem.AnyNode})
	remote, moved := 0, 0.0
	for _, m := range placementMetrics(places) {
		switch m.Name {
		case "sandwich_memory_remote_fraction":
			remote++
		case "sandwich_memory_moved_bytes":
			moved += m.Value
		case "sandwich_memory_fallbacks_total":
			if m.Value != 1 {
				t.Errorf("%v buffers fell back", m.Value)
			}
		}
	}
	if remote != 3 || moved != 4096 {
		t.Errorf("%d remote fractions of 3 bound buffers, %v bytes moved", remote, moved)
	}
}
