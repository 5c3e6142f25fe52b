package exec

import "testing"

// TestRehearsal: who follows a forward gets a batch of one row laid out, and nothing else changes
// on it; without a successor nothing happens.
func TestRehearsal(t *testing.T) {
	first, next := &Executor{runs: make([][]run, 2)}, &Executor{runs: make([][]run, 2), positions: make([]int32, 4)}
	first.heir.rehearse()
	first.Expect(next)
	next.positions[0] = 7
	first.heir.rehearse()
	second := &Executor{runs: make([][]run, 2), positions: make([]int32, 1), states: &States{store: 1}}
	first.Expect(second)
	first.heir.rehearse()
	if len(second.runs[0]) != 1 || second.runs[1] != nil || len(second.passages) != 1 || len(second.courses) != 2 {
		t.Errorf("with states: %+v, %+v, %v", second.runs, second.passages, second.courses)
	}
	for store, runs := range next.runs {
		if len(runs) != 1 || runs[0] != (run{n: 1}) {
			t.Errorf("store %d: runs %+v", store, runs)
		}
	}
	if next.positions[0] != 0 || next.batch != nil || next.rows != 0 || first.runs[0] != nil {
		t.Errorf("position %d, batch %v of %d rows", next.positions[0], next.batch, next.rows)
	}
	first.Expect(nil)
	first.heir.rehearse()
}
