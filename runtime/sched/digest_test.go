package sched

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/histories.golden from what the scheduler decides now")

// describe returns an action as text that does not depend on the order of fields or kinds. A halt
// is empty: whether a driver halts in time is part of the history.
func describe(s *Scheduler, a *Action) string {
	switch a.Kind {
	case Prefill, Resume:
		return fmt.Sprintf("prefill resume=%v id=%d pos=%d n=%d last=%v interruptible=%v\n",
			a.Kind == Resume, a.ID, a.Pos, a.N, a.Last, s.flights[a.Lane].interruptible)
	case Decode:
		return fmt.Sprintf("decode %d\n", a.ids())
	case Preempt:
		return fmt.Sprintf("preempt %d\n", a.ID)
	case Reject:
		return fmt.Sprintf("reject %d %s %s\n", a.ID, a.Reason, a.RetryAfter)
	}
	return ""
}

// ids returns the requests of a decode batch.
func (a *Action) ids() (ids []ID) {
	for _, r := range a.Rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestDecisionsAreUnchanged checks that recorded histories give the same actions as before. A
// change that is meant to decide differently updates the golden file with -update.
func TestDecisionsAreUnchanged(t *testing.T) {
	const golden = "testdata/histories.golden"
	var got strings.Builder
	for _, ample := range []bool{false, true} {
		for seed := range uint64(200) {
			sum := fnv.New64a()
			if _, err := randomHistory(history{seed: seed, ample: ample, record: sum}); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "%d %v %016x\n", seed, ample, sum.Sum64())
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have, before := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range have {
		if i >= len(before) || have[i] != before[i] {
			t.Fatalf("history %q is answered otherwise than before", have[i])
		}
	}
}
