package enumerate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
)

// form is the canonical form of a tree as text: the oracle's notion of equivalence, with no hash in
// it.
func form(n *topotree.Node) string {
	var kids []string
	for _, c := range n.Children {
		kids = append(kids, form(c))
	}
	slices.Sort(kids)
	return fmt.Sprintf("%s/%v/%s/%v[%s]", n.Kind, n.Virtual, n.Color, n.Positions(), strings.Join(kids, " "))
}

// oracle walks the space by brute force: every group that fits on top of every tree, then every
// remove on every tree in every order, until nothing new comes out. It returns canonical form ->
// number of PUs.
func oracle(t *testing.T, base *topotree.Tree, maxGroups int) map[string]int {
	t.Helper()
	grouped := map[string]*topotree.Tree{form(base.Root()): base}
	frontier := []*topotree.Tree{base}
	for range maxGroups {
		var next []*topotree.Tree
		for _, tree := range frontier {
			for d := 1; d <= tree.Depth(); d++ {
				largest := 0
				for _, p := range tree.Level(d - 1) {
					largest = max(largest, len(p.Children))
				}
				for n := 2; n < largest; n++ {
					for stride := 1; stride <= largest; stride++ {
						g, err := tree.Apply(topotree.Group(n, stride, d))
						if err != nil {
							continue
						}
						if f := form(g.Root()); grouped[f] == nil {
							grouped[f] = g
							next = append(next, g)
						}
					}
				}
			}
		}
		frontier = next
	}
	found := map[string]int{}
	queue := slices.Collect(maps.Values(grouped))
	for len(queue) > 0 {
		tree := queue[0]
		queue = queue[1:]
		f := form(tree.Root())
		if _, seen := found[f]; seen {
			continue
		}
		found[f] = tree.PUs()
		for _, x := range oracleRemoves(tree) {
			if next, err := tree.Apply(x); err == nil {
				queue = append(queue, next)
			}
		}
	}
	return found
}

// oracleRemoves lists every remove worth trying on a tree: on all colors, on each color where a
// depth of the fundamental classes has at most three, and each color alone.
func oracleRemoves(tree *topotree.Tree) []topotree.Transform {
	var out []topotree.Transform
	full := tree.Full()
	for d := 1; d <= tree.Depth(); d++ {
		colors := map[topotree.Color]bool{}
		largest := 0
		for _, p := range full.Level(d - 1) {
			if len(p.Children) > 1 {
				colors[p.Color] = true
			}
			largest = max(largest, len(p.Children))
		}
		for n := 1; n < largest; n++ {
			out = append(out, topotree.Remove(n, d))
			if len(colors) <= 3 {
				for c := range colors {
					out = append(out, topotree.RemoveColor(n, d, c))
				}
			}
		}
	}
	if basics := len(tree.Palette()); basics > 1 && basics <= 3 {
		for i := range basics {
			out = append(out, topotree.Only(topotree.BasicColor(i)))
		}
	}
	return out
}

// TestEnumerateAgainstOracle compares the walk over classes with brute force over nodes on small
// machines.
func TestEnumerateAgainstOracle(t *testing.T) {
	for name, m := range topotest.SmallMachines(t) {
		t.Run(name, func(t *testing.T) {
			groups := 2
			if m.Tree.PUs() > 8 && len(m.Tree.Palette()) > 1 {
				groups = 1
			}
			want := oracle(t, m.Tree, groups)
			got := map[string]int{}
			digests := map[topotree.Digest]bool{}
			var stats enumerate.Stats
			for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{MaxGroups: groups, Stats: &stats}) {
				if digests[tree.Digest()] {
					t.Fatalf("%v: digest came twice", tree.Transforms())
				}
				digests[tree.Digest()] = true
				if err := tree.Check(); err != nil {
					t.Fatalf("%v: %v", tree.Transforms(), err)
				}
				f := form(tree.Root())
				if _, twice := got[f]; twice {
					t.Fatalf("%v: form came twice", tree.Transforms())
				}
				got[f] = tree.PUs()
				// The text of the transforms leads to the same tree.
				again, err := m.Tree.ApplyAll(tree.Transforms()...)
				if err != nil || again.Digest() != tree.Digest() || !again.CPUs().Equal(tree.CPUs()) {
					t.Fatalf("%v: applied anew gives another tree: %v", tree.Transforms(), err)
				}
			}
			for f, pus := range want {
				if got[f] != pus {
					t.Errorf("missing a tree of %d PUs: %s", pus, f)
					break
				}
			}
			if len(got) != len(want) || stats.Kept != len(got) || stats.Generated != stats.Kept+stats.Duplicates {
				t.Errorf("%d trees, the oracle has %d; stats %+v", len(got), len(want), stats)
			}
		})
	}
}
