package answer

import (
	"errors"
	"maps"
	"testing"

	"sandwich/runtime/energy"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/mem"
)

// TestPlacementMetrics uses a machine of two nodes, one of which lacked memory for half of a rank's
// weights.
func TestPlacementMetrics(t *testing.T) {
	places := append([]forward.Placement{
		{Rank: 0, What: "weights", Node: 0},
		{Rank: 0, What: "kv", Node: 0},
		{Rank: 1, What: "weights", Node: 1, Remote: 0.5, Misplaced: true, Moved: 4096},
	}, forward.Placement{Rank: 2, What: "weights",
		Node: mem.AnyNode})
	remote, moved := 0, 0.0
	for _, m := range placementMetrics(places) {
		switch m.Name {
		case "sandwich_memory_remote_ratio":
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

// TestDraftMetrics checks that each drafter has its counters and its memory.
func TestDraftMetrics(t *testing.T) {
	got := map[string]float64{}
	drafts := []drafting.Counts{{Name: "a", Drafted: 9, Accepted: 4, Bytes: 100}, {Name: "b"}}
	for _, m := range draftMetrics(drafts) {
		got[m.Name+" "+m.Labels[0][1]] = m.Value
	}
	want := map[string]float64{"sandwich_draft_tokens_total a": 9, "sandwich_draft_accepted_tokens_total a": 4,
		"sandwich_drafter_memory_bytes a": 100, "sandwich_draft_tokens_total b": 0,
		"sandwich_draft_accepted_tokens_total b": 0, "sandwich_drafter_memory_bytes b": 0}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEnergyMetrics checks that a source is a counter in joules, or has a reason.
func TestEnergyMetrics(t *testing.T) {
	got := map[string]float64{}
	for _, m := range energyMetrics(energy.Reading{{Name: "package-0", Domain: energy.Package, Joules: 12.5},
		{Name: "cuda:0", Domain: energy.Device, Joules: 3, Err: errors.New("no permission")}}) {
		name := m.Name
		for _, l := range m.Labels {
			name += " " + l[1]
		}
		got[name] = m.Value
	}
	want := map[string]float64{"sandwich_energy_joules_total package-0 package": 12.5,
		"sandwich_energy_not_readable cuda:0 device no permission": 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
