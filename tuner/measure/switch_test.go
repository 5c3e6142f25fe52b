package measure

import (
	"testing"

	"sandwich/plans"
	"sandwich/topotree"
)

func TestFewerForDecode(t *testing.T) {
	plan := &plans.Plan{Prefill: plans.Phase{PUs: topotree.NewCPUSet(0, 1, 2, 3)},
		Decode: plans.Phase{PUs: topotree.NewCPUSet(0, 1, 2, 3)},
		Ranks:  []plans.Rank{{PUs: topotree.NewCPUSet(2, 3)}, {PUs: topotree.NewCPUSet(0, 1)}}}
	got, err := FewerForDecode(plan)
	if err != nil || !got.Decode.PUs.Equal(topotree.NewCPUSet(0, 2)) || plan.Decode.PUs.Count() != 4 {
		t.Errorf("%v %v", got, err)
	}
	if same, err := FewerForDecode(got); err != nil || same != got {
		t.Error("a plan that decodes on fewer PUs was changed")
	}
	plan.Ranks = []plans.Rank{{PUs: topotree.NewCPUSet(0)}, {PUs: topotree.NewCPUSet(1)}, {PUs: topotree.NewCPUSet(2)},
		{PUs: topotree.NewCPUSet(3)}}
	if _, err := FewerForDecode(plan); err == nil {
		t.Error("one PU a rank leaves nothing to park")
	}
}
