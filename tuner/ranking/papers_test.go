package ranking

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"gopkg.in/yaml.v3"

	"sandwich/topotree"
	"sandwich/tuner/candidates"
)

// param is a value of docs/papers.params.yaml.
type param struct {
	Value  any    `yaml:"value"`
	Kind   string `yaml:"kind"` // given, fit, assumed
	Unit   string `yaml:"unit"`
	Source string `yaml:"source"`
}

func readParams(t *testing.T) map[string]map[string]param {
	t.Helper()
	data, err := os.ReadFile("../../docs/papers.params.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]map[string]param
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for group, list := range out {
		for name, p := range list {
			if p.Source == "" || p.Kind != "given" && p.Kind != "fit" && p.Kind != "assumed" {
				t.Errorf("%s.%s: kind %q, source %q", group, name, p.Kind, p.Source)
			}
		}
	}
	return out
}

// kunpeng returns the machine of figure 3a, with its assumed values varied by vary.
func kunpeng(t *testing.T, list map[string]param, vary func() float64) *syntheticHost {
	t.Helper()
	v := func(name string) float64 {
		p, ok := list[name]
		if !ok {
			t.Fatalf("docs/papers.params.yaml has no %s", name)
		}
		var x float64
		switch n := p.Value.(type) {
		case int:
			return float64(n) // counts are not varied
		case float64:
			x = n
		}
		if p.Kind == "assumed" {
			x *= vary()
		}
		return x
	}
	h := &syntheticHost{kind: "kunpeng", nodes: int(v("nodes")), clusters: int(v("cores") / v("cluster")),
		cores: int(v("cluster")), smt: 1, clusterCap: v("cluster_read"), clusterKnee: int(v("cluster_knee")),
		clusterLoss: v("cluster_loss"), nodeKnee: int(v("node_knee")), nodeLoss: v("node_loss"),
		link: v("link_read"), far: 2, barrier: v("barrier"), perLevel: v("barrier_level")}
	speed, one, read := v("core_flops"), v("core_read"), v("node_read")
	slowSpeed, slowMemory := min(0.99, v("slow_speed")), min(0.99, v("slow_memory"))
	for n := range h.nodes {
		slow := n >= int(v("fast_nodes"))
		by, memory := 1.0, 1.0
		if slow {
			by, memory = slowSpeed, slowMemory
		}
		h.nodeCap = append(h.nodeCap, read*memory)
		for range h.clusters * h.cores {
			h.speed, h.one = append(h.speed, speed*by), append(h.one, one*by)
		}
	}
	return h
}

// figure3a predicts the five configurations of the figure: one rank per node, with prefill and
// decode on the same cores, as in the paper's baselines.
func figure3a(t *testing.T, h *syntheticHost) map[string]float64 {
	t.Helper()
	p := h.profile(t, 1, 0)
	predictor := predictorOf(t, p, shapeFor(t, "llama-3.1-8b", "f32"))
	keep := map[string]func(pu int) bool{
		"NUMA":      func(int) bool { return true },
		"SC-RM":     func(pu int) bool { return pu%4 != 3 },
		"NUMA-RM":   func(pu int) bool { return pu%24 < 18 },
		"fast NUMA": func(pu int) bool { return h.node(pu) < 4 },
		"slow NUMA": func(pu int) bool { return h.node(pu) >= 4 },
	}
	out := map[string]float64{}
	for name, in := range keep {
		var pus []int
		for pu := range h.pus() {
			if in(pu) {
				pus = append(pus, pu)
			}
		}
		set := topotree.NewCPUSet(pus...)
		c := &candidates.Config{Prefill: set, Decode: set}
		for _, n := range p.Machine.Memory {
			if part := set.Intersect(n.CPUs); !part.IsEmpty() {
				c.Ranks = append(c.Ranks, candidates.Rank{PUs: part, Nodes: []int{n.ID}})
			}
		}
		cost, err := predictor.Cost(c)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = cost.PrefillSeconds(161) + 337*cost.DecodeSeconds(1, 330)
	}
	return out
}

// TestFigure3a predicts figure 3a of Sandwich at the values of docs/papers.params.yaml, and prints
// in which fraction of the box around the assumed values the paper's order holds (docs/papers.md).
// It checks the order that the model implies: one core less in each cluster beats removing the same
// number at the end of each node, all nodes beat half of them, and fast ones beat slow ones.
// SANDWICH_BOX sets the number of machines drawn.
func TestFigure3a(t *testing.T) {
	list := readParams(t)["kunpeng"]
	order := []string{"SC-RM", "NUMA-RM", "NUMA", "fast NUMA", "slow NUMA"}
	holds := func(x map[string]float64) bool {
		for i := 1; i < len(order); i++ {
			if x[order[i-1]] >= x[order[i]] {
				return false
			}
		}
		return true
	}
	at := figure3a(t, kunpeng(t, list, func() float64 { return 1 }))
	for _, name := range order {
		t.Logf("%-10s %.3f of SC-RM", name, at[name]/at["SC-RM"])
	}
	if at["SC-RM"] >= at["NUMA-RM"] || at["NUMA"] >= at["fast NUMA"] || at["fast NUMA"] >= at["slow NUMA"] {
		t.Errorf("%v", at)
	}
	n := 10
	if v, err := strconv.Atoi(os.Getenv("SANDWICH_BOX")); err == nil {
		n = v
	}
	r := rand.New(rand.NewPCG(1, 3))
	count, pairs := 0, map[string]int{}
	low, high := 10.0, 0.0
	for range n {
		x := figure3a(t, kunpeng(t, list, func() float64 { return 0.8 + 0.4*r.Float64() }))
		if holds(x) {
			count++
		}
		for i := 1; i < len(order); i++ {
			if x[order[i-1]] < x[order[i]] {
				pairs[order[i-1]+" before "+order[i]]++
			}
		}
		low, high = min(low, x["NUMA-RM"]/x["SC-RM"]), max(high, x["NUMA-RM"]/x["SC-RM"])
	}
	t.Logf("the whole order holds on %d of %d machines of the box; NUMA-RM over SC-RM is %.3f to %.3f", count, n, low,
		high)
	for i := 1; i < len(order); i++ {
		name := order[i-1] + " before " + order[i]
		t.Logf("%s: %d of %d", name, pairs[name], n)
	}
}
