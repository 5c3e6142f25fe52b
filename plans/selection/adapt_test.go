package selection

import (
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/topotree"
)

// TestCutThreads checks that fewer threads than a plan has PUs are taken from all of its ranks
// alternately.
func TestCutThreads(t *testing.T) {
	plan := func() *plans.Plan {
		p := &plans.Plan{Name: "x", Ranks: []plans.Rank{{PUs: topotree.NewCPUSet(0, 1, 2)},
			{PUs: topotree.NewCPUSet(3, 4)}}}
		p.Prefill.PUs, p.Decode.PUs = topotree.NewCPUSet(0, 1, 2, 3, 4), topotree.NewCPUSet(1, 3)
		p.Prefill.Tables = []plans.Table{{Rules: []plans.Rule{{Schedule: plans.Schedule{WaysM: 1, WaysN: 5}}}}}
		return p
	}
	for n, want := range map[int]topotree.CPUSet{2: topotree.NewCPUSet(0, 3), 3: topotree.NewCPUSet(0, 1, 3),
		4: topotree.NewCPUSet(0, 1, 3, 4), 5: topotree.NewCPUSet(0, 1, 2, 3, 4)} {
		p := plan()
		if err := cutThreads(p, n); err != nil {
			t.Fatal(err)
		}
		if !p.Prefill.PUs.Equal(want) || !p.Decode.PUs.Equal(topotree.NewCPUSet(1, 3)) {
			t.Errorf("%d threads: prefill on %v, decode on %v", n, p.Prefill.PUs, p.Decode.PUs)
		}
		if static := p.Prefill.Tables[0].Rules[0].Schedule.WaysN > 0; static != (n == 5) {
			t.Errorf("%d threads: a scheme for five threads stays: %v", n, static)
		}
	}
	for n, want := range map[int]string{1: "2 ranks", 6: "fewer than --threads 6"} {
		if err := cutThreads(plan(), n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d threads: %v", n, err)
		}
	}
}

// TestAdaptKeepsWhatAttentionReads checks that a plan with integer attention accepts no other KV
// cache type, and that one with float32 attention accepts any.
func TestAdaptKeepsWhatAttentionReads(t *testing.T) {
	for dot, ok := range map[microkernel.AttentionDot]bool{microkernel.AttendDPBUSD: false,
		microkernel.AttendF32: true} {
		for kv, reads := range map[string]bool{"f16": ok, "q8_0": true, "": true} {
			p := &plans.Plan{Name: "x", KV: microkernel.KVQ8, Attention: dot}
			if err := (&Options{KV: kv}).adapt(p, p); (err == nil) != reads {
				t.Errorf("a plan by %s with --kv %q: %v", dot, kv, err)
			}
		}
	}
}

// TestAdaptForDevice checks that a stored plan without device kernels is not used for a device.
func TestAdaptForDevice(t *testing.T) {
	for path, ok := range map[microkernel.Compute]bool{microkernel.ComputeInt8K: true,
		microkernel.ComputeInt8Superblock: false} {
		p := &plans.Plan{Name: "x", KV: microkernel.KVF16, Attention: microkernel.AttendF32}
		p.Weights = []plans.WeightPlan{{WeightKey: plans.WeightKey{N: 64, K: 256, Type: "q2_k"}, Compute: path}}
		if err := (&Options{Device: true}).adapt(p, p); (err == nil) != ok {
			t.Errorf("a plan with path %s for a device: %v", path, err)
		}
		if err := (&Options{}).adapt(p, p); err != nil {
			t.Errorf("a plan with path %s: %v", path, err)
		}
	}
}
