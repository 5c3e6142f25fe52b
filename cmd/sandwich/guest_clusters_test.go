//go:build numa

package main

import (
	"slices"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/testguest"
)

// fourClusters is one arm64 package of two nodes, each with two clusters of two cores.
var fourClusters = testguest.Machine{Arch: "arm64", Nodes: 2, CPUsPerNode: 4, Clusters: 2, MiBPerNode: 640,
	Distances: [][]int{{10, 15}, {15, 10}}}

// TestGuestClusters runs sandwich on an arm64 machine of four clusters in two nodes.
func TestGuestClusters(t *testing.T) {
	ref := guestReference(t)
	g := bootGuest(t, &fourClusters, []testguest.Step{
		probeStep(),
		exactly("tp1", ref, ""),
		exactly("tp2", ref, "--tp 2"),
		step("tune", "tune --budget 10s --effort quick --seq-max 64 --batch-max 2 --top-k 2 -o /tmp/tuned.plan"+
			exactFlags),
		exactly("tuned", ref, "--plan /tmp/tuned.plan"),
	})
	g.expectMachine(&fourClusters)
	var p probe
	g.decode("probe", &p)
	if p.Summary.Packages != 1 || !slices.Equal(p.Sets.Cluster, []string{"0-1", "2-3", "4-5", "6-7"}) {
		t.Errorf("%d packages with the clusters %v, want one with four", p.Summary.Packages, p.Sets.Cluster)
	}
	g.expectExact("tp1", ref)
	g.expectExact("tp2", ref)
	g.result("tune", exit.OK)
	g.expectExact("tuned", ref)
}
