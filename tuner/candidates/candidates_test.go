package candidates

import (
	"strings"
	"testing"

	"sandwich/profiles"
)

// TestCandidatesOfKunpeng checks that all trees are walked, that both ways of leaving a quarter of
// the cores free occur with one rank per node, and that the configurations that are always offered
// occur.
func TestCandidatesOfKunpeng(t *testing.T) {
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	space, err := Enumerate(p, shapeOf(t, "llama-3.1-8b", "f32"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if space.Trees != 29184 || space.Truncated {
		t.Errorf("%d trees, more left: %v", space.Trees, space.Truncated)
	}
	perCluster, perNode := false, false
	names, keys := map[string]bool{}, map[string]bool{}
	for _, c := range space.Configs {
		names[c.Origin.Always] = true
		if c.Origin.Always == "" && keys[c.key()] {
			t.Fatalf("%s comes twice", c.Name())
		}
		keys[c.key()] = true
		if c.TP() != 8 || c.Decode.Count() != 144 || c.Prefill.Count() != 192 {
			continue
		}
		missing := func(pu int) bool { return !c.Decode.Contains(pu) }
		perCluster = perCluster || missing(3) && missing(7) && missing(23)
		perNode = perNode || missing(18) && missing(23) && missing(42)
	}
	if !perCluster || !perNode {
		t.Errorf("one core less a cluster: %v, six less a node: %v", perCluster, perNode)
	}
	for _, name := range []string{AllPUs, OneACore, ForServer, Unpinned, VLLM, VLLMTwo, "package 0 alone",
		"numa 7 alone"} {
		if !names[name] {
			t.Errorf("%q is not among the candidates", name)
		}
	}
	t.Logf("%d configurations", len(space.Configs))
}

// TestNothingFits checks the reason of the error if nothing fits.
func TestNothingFits(t *testing.T) {
	p := twoPUs(t)
	for _, c := range []struct {
		o    Options
		says string
	}{{Options{TP: 3}, "no section has 3 ranks"}} {
		if _, err := Enumerate(p, shapeOf(t, "tinyllama-1.1b", "f32"), c.o); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.says)
		}
	}
}
