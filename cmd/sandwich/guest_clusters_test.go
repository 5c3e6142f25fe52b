//go:build numa

package main

import (
	"slices"
	"testing"

	"sandwich/cmd/sandwich/internal/guest"
)

// twoClusters is one arm64 package of two clusters of four cores, each with a node.
var twoClusters = guest.Machine{Arch: "arm64", Nodes: 2, CPUsPerNode: 4, MiBPerNode: 640, Distances: [][]int{{10, 15}, {15, 10}}}

// TestGuestClusters runs sandwich on an arm64 machine of two clusters.
func TestGuestClusters(t *testing.T) {
	ref := guestReference(t)
	g := bootGuest(t, &twoClusters, []guest.Step{
		probeStep(),
		exactly("tp1", ref, ""),
		step("tune", "tune --budget 10s --effort quick --seq-max 64 --batch-max 2 --top-k 2 -o /tmp/tuned.plan"+exactFlags),
		exactly("tuned", ref, "--plan /tmp/tuned.plan"),
	})
	g.expectMachine(&twoClusters)
	var p probe
	g.decode("probe", &p)
	if p.Summary.Packages != 1 || !slices.Equal(p.Sets.Cluster, []string{"0-3", "4-7"}) {
		t.Errorf("%d packages with the clusters %v, want one with two", p.Summary.Packages, p.Sets.Cluster)
	}
	g.expectExact("tp1", ref)
	g.result("tune", exitOK)
	g.expectExact("tuned", ref)
}
