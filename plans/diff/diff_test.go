package diff_test

import (
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/diff"
	"sandwich/plans/internal/bundletest"
	"sandwich/topotree"
)

// Differences of the model pair like with like, one change for each thing, all in one group.
func TestDiffOfModels(t *testing.T) {
	a, b := bundletest.New(t).Plan, bundletest.New(t).Plan
	b.Model.Name, b.Model.Weights = "other", slices.Clone(b.Model.Weights)
	b.Model.Weights[0].Type = "q4_0"
	b.Model.Vocab++
	want := []diff.Change{
		{Path: "model.name", Group: "model", Item: "name", Old: "llama-160m", New: "other"},
		{Path: "model.vocab", Group: "model", Item: "vocab", Old: "32000", New: "32001"},
		{Path: "model.weight embed", Group: "model", Item: "weight embed", Old: "32000x768:q8_0",
			New: "32000x768:q4_0"},
	}
	if got := diff.Plans(&a, &b); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	b = bundletest.New(t).Plan
	b.Model.Weights = slices.Clone(b.Model.Weights)
	b.Model.Weights[0].Count++
	if got := diff.Plans(&a, &b); len(got) != 1 || got[0].Item != "weight embed" || got[0].Old == got[0].New {
		t.Errorf("a matrix more: %v", got)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plans.Plan)
		want   []string
	}{
		{"nothing", func(*plans.Plan) {}, nil},
		{"decode PUs", func(p *plans.Plan) { p.Decode.PUs = topotree.NewCPUSet(1) }, []string{"service.decode_pus"}},
		{"chunk", func(p *plans.Plan) { p.Chunk = 64 }, []string{"chunk"}},
		{"compute", func(p *plans.Plan) { p.Weights[1].Compute = microkernel.ComputeF32 },
			[]string{"weights 768x3072:q8_0"}},
		{"one schedule", func(p *plans.Plan) { p.Decode.Tables[0].Rules[1].Schedule.BN *= 2 },
			[]string{"decode 768x768:q8_0 m " + bundletest.New(t).Plan.Decode.Tables[0].Rules[1].Span()}},
		{"a split rule", func(p *plans.Plan) {
			r := &p.Prefill.Tables[2].Rules
			last := len(*r) - 1
			open := (*r)[last]
			(*r)[last].MHi = open.MLo + 10
			open.MLo += 11
			*r = append(*r, open)
		}, nil},
		{"a table gone", func(p *plans.Plan) { p.Decode.Tables = p.Decode.Tables[1:] },
			nil}, // its ranges are listed below
		{"another model", func(p *plans.Plan) { p.Model.Layers = 13 }, []string{"model.layers"}},
		{"a rank more", func(p *plans.Plan) { p.Ranks = append(p.Ranks, plans.Rank{PUs: topotree.NewCPUSet(9)}) },
			[]string{"exact",
				"service.tp", "service.ranks[1]"}},
	} {
		a, b := bundletest.New(t).Plan, bundletest.New(t).Plan
		c.change(&b)
		var paths []string
		for _, ch := range diff.Plans(&a, &b) {
			if ch.Old == ch.New {
				t.Errorf("%s: %s is %q on both sides", c.name, ch.Path, ch.Old)
			}
			paths = append(paths, ch.Path)
		}
		switch c.name {
		case "a split rule":
			if len(paths) != 1 || paths[0] != "content" {
				t.Errorf("%s: %v", c.name, paths)
			}
		case "a table gone":
			if len(paths) == 0 || !strings.HasPrefix(paths[0], "decode 768x768:q8_0 m 1") {
				t.Errorf("%s: %v", c.name, paths)
			}
		default:
			if !slices.Equal(paths, c.want) {
				t.Errorf("%s: %v, want %v", c.name, paths, c.want)
			}
		}
	}
}
