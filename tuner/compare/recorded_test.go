package compare

import (
	"math"
	"path/filepath"
	"testing"
)

// recordedFloors are the speeds of the default heuristic relative to the best timed again on
// recorded machines, slightly reduced, and the number of its choices that were never timed. A
// change that improves one should raise it here.
var recordedFloors = map[string]struct {
	mean, worst float64
	missing     int
}{
	"zen4-2c": {0.962, 0.85, 0},
}

// TestRulesOnRecordedMachines checks that the default heuristic does not get worse on machines that
// are not available.
func TestRulesOnRecordedMachines(t *testing.T) {
	dirs, err := filepath.Glob("testdata/machines/*")
	if err != nil || len(dirs) != len(recordedFloors) {
		t.Fatalf("%d recorded machines, %v; want %d", len(dirs), err, len(recordedFloors))
	}
	for _, dir := range dirs {
		rows, err := JudgeHeuristic(dir)
		if err != nil {
			t.Fatal(err)
		}
		logs, worst, missing := 0.0, 1.0, 0
		for i := range rows {
			if rows[i].Share == 0 {
				missing++
				continue
			}
			logs, worst = logs+math.Log(rows[i].Share), min(worst, rows[i].Share)
		}
		mean, floor := math.Exp(logs/float64(len(rows)-missing)), recordedFloors[filepath.Base(dir)]
		if !(mean >= floor.mean) || worst < floor.worst || missing > floor.missing {
			t.Errorf("%s: %.3f of the best in the mean, %.3f at worst, %d of %d choices missing; want %+v", dir, mean,
				worst, missing, len(rows), floor)
		}
	}
}
