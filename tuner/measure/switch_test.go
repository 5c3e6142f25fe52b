package measure

import (
	"slices"
	"testing"

	"sandwich/plans"
)

func TestFewerForDecode(t *testing.T) {
	plan := &plans.Plan{Prefill: plans.Phase{PUs: plans.PUSet{0, 1, 2, 3}},
		Decode: plans.Phase{PUs: plans.PUSet{0, 1, 2, 3}},
		Ranks:  []plans.Rank{{PUs: plans.PUSet{2, 3}}, {PUs: plans.PUSet{0, 1}}}}
	got, err := FewerForDecode(plan)
	if err != nil || !slices.Equal(got.Decode.PUs, plans.PUSet{0, 2}) || len(plan.Decode.PUs) != 4 {
		t.Errorf("%v %v", got, err)
	}
	if same, err := FewerForDecode(got); err != nil || same != got {
		t.Error("a plan that decodes on fewer PUs was changed")
	}
	plan.Ranks = []plans.Rank{{PUs: plans.PUSet{0}}, {PUs: plans.PUSet{1}}, {PUs: plans.PUSet{2}},
		{PUs: plans.PUSet{3}}}
	if _, err := FewerForDecode(plan); err == nil {
		t.Error("one PU a rank leaves nothing to park")
	}
}
