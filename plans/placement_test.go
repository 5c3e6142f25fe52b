package plans_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/diff"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/jsonschema"
	"sandwich/plans/summary"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/phase"
)

// placedBundle returns a bundle whose plan a device can run.
func placedBundle(t *testing.T, placement ...plans.Placement) *bundle.Bundle {
	t.Helper()
	b := bundletest.New(t)
	b.Plan.KV, b.Plan.Attention, b.Plan.Placement = microkernel.KVF16, microkernel.AttentionDots()[0], placement
	return b
}

// TestPlacement checks that a placement is written, read, described and compared, and that its
// order and entries on the cores do not change the digest.
func TestPlacement(t *testing.T) {
	both := placedBundle(t, plans.PlaceOn("cuda:0", plans.AllOps, true, phase.All[:]...)...)
	text, err := profiles.EncodeYAML(&both.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := planSchema(t).Check(planSchema(t), "plan", jsonschema.Generic(t, text)); err != nil {
		t.Error(err)
	}
	head, _, _ := strings.Cut(string(text), "placement:")
	for _, list := range []string{
		"[{phase: decode, ops: [all], device: 'cuda:0', optional: true}, " +
			"{phase: prefill, ops: [all], device: 'cuda:0', optional: true}]",
		string(text[len(head)+len("placement:"):]),
	} {
		var p plans.Plan
		if err := profiles.DecodeYAML([]byte(head+"placement: "+list), &p); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil || p.Digest() != both.Plan.Digest() {
			t.Errorf("%s is read as %+v, %v", list, p.Placement, err)
		}
	}
	both.Plan.Placement[0].CopyBytes, both.Plan.Placement[1].CopyBytes = 3<<19, 3<<19
	if text, err = profiles.EncodeYAML(&both.Plan); err != nil {
		t.Fatal(err)
	}
	if err := planSchema(t).Check(planSchema(t), "plan", jsonschema.Generic(t, text)); err != nil {
		t.Error(err)
	}
	var read plans.Plan
	if err := profiles.DecodeYAML(text, &read); err != nil || read.Placement[1].CopyBytes != 3<<19 ||
		!strings.HasSuffix(read.PlacementText(), "; it holds a second copy of the weights, 1.5 MiB") {
		t.Errorf("%s: %v", read.PlacementText(), err)
	}
	id, phases, optional := both.Plan.Device()
	if id != "cuda:0" || !slices.Equal(phases, phase.All[:]) || !optional {
		t.Errorf("%s runs %v, optional %v", id, phases, optional)
	}
	one := placedBundle(t, plans.PlaceOn("cuda:0", plans.AllOps, false, phase.Prefill)...)
	want := "prefill on device cuda:0"
	if got := one.Plan.PlacementText(); got != want || !strings.Contains(summary.Headline(&one.Plan, bundle.Untuned),
		want) {
		t.Errorf("%q; %q", got, summary.Headline(&one.Plan, bundle.Untuned))
	}
	changes := diff.Plans(&both.Plan, &one.Plan)
	if len(changes) != 2 || changes[0].Path != "placement.prefill" ||
		changes[0].Old != "cuda:0, optional, copy of 1.5 MiB" || changes[1].New != "cores" {
		t.Errorf("%+v", changes)
	}
	if s := summary.Of(one); len(s.Placement) != 1 || s.Placement[0].Phase != "prefill" {
		t.Errorf("%+v", s.Placement)
	}
}

// TestPlacementRefusals checks placements that this build cannot follow and plans that no device
// can run.
func TestPlacementRefusals(t *testing.T) {
	prefill := plans.PlaceOn("cuda:0", plans.AllOps, false, phase.Prefill)
	decode := plans.PlaceOn("cuda:1", plans.AllOps, false, phase.Decode)
	for want, change := range map[string]func(p *plans.Plan){
		"placement lists prefill twice": func(p *plans.Plan) { p.Placement = append(prefill, prefill...) },
		"uses one device for a plan":    func(p *plans.Plan) { p.Placement = append(prefill, decode...) },
		"no kernel for attention by dpbusd: use f32": func(p *plans.Plan) {
			p.Attention = microkernel.AttendDPBUSD
		},
		"no kernel for a KV cache of type q8_0": func(p *plans.Plan) { p.KV = microkernel.KVQ8 },
		"there is no device kernel of path bf16-tile for weights of type": func(p *plans.Plan) {
			p.Weights[0].Compute = microkernel.ComputeBF16Tile
		},
		"there is no device kernel of path int8 for weights of type q2_k": func(p *plans.Plan) {
			p.Weights[0].Type, p.Weights[0].Compute = "q2_k", microkernel.ComputeInt8
		},
		"the 2 ranks of the plan would divide the weights": func(p *plans.Plan) { p.Ranks = make([]plans.Rank, 2) },
		"phase prefill is on both cores and cuda:0; this build places": func(p *plans.Plan) {
			p.Placement = onCoresToo(prefill)
		},
		"placement has ops all and dense on device cuda:0: this build moves the same ops": func(p *plans.Plan) {
			p.Placement = append(prefill, plans.PlaceOn("cuda:0", plans.DenseOps, false, phase.Decode)...)
		},
		"the model has no experts for the cores: use all": func(p *plans.Plan) {
			p.Placement = plans.PlaceOn("cuda:0", plans.DenseOps, false, phase.Prefill)
		},
		"no device kernel computes the 4 experts of the model: use dense": func(p *plans.Plan) {
			p.Model.Experts = 4
		},
		"copy_bytes -1 is not in 0..": func(p *plans.Plan) { p.Placement[0].CopyBytes = -1 },
		"copies of 1 and 0 bytes": func(p *plans.Plan) {
			p.Placement = plans.PlaceOn("cuda:0", plans.AllOps, false, phase.All[:]...)
			p.Placement[0].CopyBytes = 1
		},
		`device "a b" is not 1 to 64 lower-case letters`:  func(p *plans.Plan) { p.Placement[0].Device = "a b" },
		"entries on cores have no effect: leave them out": func(p *plans.Plan) { p.Placement[0].Device = "cores" },
		"ops norm on device cuda:0: this build moves whole phases": func(p *plans.Plan) {
			p.Placement[0].Ops = []string{"norm"}
		},
	} {
		b := placedBundle(t, slices.Clone(prefill)...)
		b.Plan.Weights = slices.Clone(b.Plan.Weights)
		change(&b.Plan)
		if err := b.Plan.CheckPlacement(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
}

// TestPlacementOfExperts checks that the cores may compute the experts of a placed phase on any
// path, and that the plan says so.
func TestPlacementOfExperts(t *testing.T) {
	b := placedBundle(t, plans.PlaceOn("cuda:0", plans.DenseOps, true, phase.All[:]...)...)
	b.Plan.Model.Experts, b.Plan.Weights = 4, slices.Clone(b.Plan.Weights)
	routed := 0
	for i := range b.Plan.Weights {
		if !slices.ContainsFunc(b.Plan.Model.Weights, func(w plans.WeightShape) bool {
			return w.Key() == b.Plan.Weights[i].WeightKey && !b.Plan.Model.Routed(w)
		}) {
			b.Plan.Weights[i].Compute, routed = microkernel.ComputeInt8K, routed+1
		}
	}
	if err := b.Plan.CheckPlacement(); err != nil || routed == 0 {
		t.Errorf("%d weights of experts on path int8-k: %v", routed, err)
	}
	want := "prefill and decode on device cuda:0 with the experts on the PUs, or on the PUs if the host lacks it"
	if got := b.Plan.PlacementText(); got != want || b.Plan.DeviceOps() != plans.DenseOps {
		t.Errorf("ops %s: %s", b.Plan.DeviceOps(), got)
	}
	if got := b.Plan.PlaceText(phase.Decode); got != "cuda:0, dense ops, optional" {
		t.Errorf("decode on %s", got)
	}
}

// onCoresToo adds an entry of one op on the cores.
func onCoresToo(list []plans.Placement) []plans.Placement {
	return append(slices.Clone(list), plans.Placement{Phase: "prefill", Ops: []string{"norm"}, Device: "cores"})
}

// TestPlacementOnHosts checks the verdict on a host without the device, and with another one.
func TestPlacementOnHosts(t *testing.T) {
	made := []devrates.Device{{ID: "cuda:0", Name: "A", Driver: "1"}}
	for _, c := range []struct {
		name     string
		optional bool
		here     []devrates.Device // nil: unknown
		code     int
		want     string // in the reasons; "": none of the device
		retune   bool
	}{
		{"unknown", false, nil, 0, "", false},
		{"same", false, made, 0, "", false},
		{"absent", false, []devrates.Device{}, 4, "runs on device cuda:0, and this host has no device", false},
		{"another ID", false, []devrates.Device{{ID: "vulkan:0", Name: "B"}}, 4, "this host has vulkan:0 (B)", false},
		{"absent, optional", true, []devrates.Device{}, 0, "lacks device cuda:0 (it has no device)", false},
		{"another device", true, []devrates.Device{{ID: "cuda:0", Name: "B", Driver: "1"}}, 0, `was "A" and is "B"`, true},
		{"another driver", false, []devrates.Device{{ID: "cuda:0", Name: "A", Driver: "2"}}, 0, `was "1" and is "2"`,
			false},
	} {
		b := placedBundle(t, plans.PlaceOn("cuda:0", plans.AllOps, c.optional, phase.Prefill)...)
		b.Host.Devices = made
		host := b.Host
		host.Devices = c.here
		v := check.Verify(b, &host, nil)
		reasons := strings.Join(v.Reasons, "; ")
		if plans.ExitCode(v.Err) != c.code || !strings.Contains(reasons, c.want) ||
			c.want == "" && strings.Contains(reasons, "device") || (v.Judgement == check.Retune) != c.retune {
			t.Errorf("%s: %s, %q, %v", c.name, v.Judgement, reasons, v.Err)
		}
		if c.code == 4 && !errors.Is(v.Err, plans.ErrForeignHost) {
			t.Errorf("%s: %v", c.name, v.Err)
		}
	}
}
