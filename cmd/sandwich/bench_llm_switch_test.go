package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/profiles"
)

func TestBenchSwitch(t *testing.T) {
	host, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	if len(host.CorePUs()) < 2 {
		t.Skip("needs two PUs")
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	f := llmFlags{session: sessionFlags{compute: "auto", ranks: 1}, threads: []int{2}, reps: 2}
	rows, err := f.runSwitch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if len(r.Samples) != 2 || r.Median <= 0 || r.Moved != 0 || r.Switches < 6 || r.Goal != switchGoals[i] {
			t.Errorf("%+v", r)
		}
		if strings.Contains(r.Decode, ",") || r.Decode == r.Prefill {
			t.Errorf("prefill on %s, decode on %s", r.Prefill, r.Decode)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.runSwitch(ctx); err == nil {
		t.Error("it went on after Ctrl-C")
	}
}

func TestFewerForDecode(t *testing.T) {
	plan := &plans.Plan{Prefill: plans.Phase{PUs: plans.PUSet{0, 1, 2, 3}},
		Decode: plans.Phase{PUs: plans.PUSet{0, 1, 2, 3}},
		Ranks:  []plans.Rank{{PUs: plans.PUSet{2, 3}}, {PUs: plans.PUSet{0, 1}}}}
	got, err := fewerForDecode(plan)
	if err != nil || !slices.Equal(got.Decode.PUs, plans.PUSet{0, 2}) || len(plan.Decode.PUs) != 4 {
		t.Errorf("%v %v", got, err)
	}
	if same, err := fewerForDecode(got); err != nil || same != got {
		t.Error("a plan that decodes on fewer PUs was changed")
	}
	plan.Ranks = []plans.Rank{{PUs: plans.PUSet{0}}, {PUs: plans.PUSet{1}}, {PUs: plans.PUSet{2}},
		{PUs: plans.PUSet{3}}}
	if _, err := fewerForDecode(plan); err == nil {
		t.Error("one PU a rank leaves nothing to park")
	}
}
