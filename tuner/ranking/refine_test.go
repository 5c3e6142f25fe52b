package ranking

import "testing"

// TestRefine checks that a node that reads at half of the speed of the others and has no color of
// its own gets less of the weights than trees alone would give it.
func TestRefine(t *testing.T) {
	h := tame(4)
	h.kind, h.nodes, h.clusters, h.cores, h.smt = "slow", 3, 1, 6, 1
	h.speed, h.one = nil, nil
	for range 18 {
		h.speed, h.one = append(h.speed, 100e9), append(h.one, 10e9)
	}
	h.clusterCap, h.clusterLoss, h.clusterKnee = 60e9, 0, 6
	h.nodeCap, h.nodeLoss, h.link, h.far = []float64{20e9, 40e9, 40e9}, 0, 5e9, 3
	p := h.profile(t, 4, 0)
	r := simulated(t, p, 0)
	plain := 0.0
	for _, c := range r.Ranked {
		if c.Names[0] == "one rank a NUMA node (vLLM)" {
			plain = c.Score
		}
	}
	best := r.Ranked[0]
	if best.Score < 1.2*plain || plain == 0 {
		t.Errorf("%s scores %g, one rank a node %g", best.Names[0], best.Score, plain)
	}
	slow, fast := 0, 0
	for _, rank := range best.Config.Ranks {
		if rank.Node() == 0 {
			slow = rank.PUs.Count()
		} else {
			fast = max(fast, rank.PUs.Count())
		}
	}
	if slow >= fast {
		t.Errorf("%s: the slow node has %d PUs and others %d", best.Names[0], slow, fast)
	}
}
