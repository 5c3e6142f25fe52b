package topotree_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/internal/topotest"
)

func TestTransformText(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		color := topotree.BasicColor(r.IntN(5)).Union(topotree.BasicColor(r.IntN(300)))
		for _, x := range []topotree.Transform{
			topotree.Group(2+r.IntN(30), 1+r.IntN(30), 1+r.IntN(9)), topotree.Remove(1+r.IntN(30), 1+r.IntN(9)),
			topotree.RemoveColor(1+r.IntN(30), 1+r.IntN(9), color), topotree.Only(color),
		} {
			if back, err := topotree.ParseTransform(x.String()); err != nil || back != x {
				t.Fatalf("%s came back as %s: %v", x, back, err)
			}
		}
	}
	for _, text := range []string{
		"", "group", "group()", "group(4,1)", "group(4,1,3", "group(4,1,3,0)", "remove(1)", "remove(1,2,x)",
		"remove(a,b)", "cut(1,2)",
		"group(1,1,1)", "group(2,0,1)", "group(2,1,0)", "remove(0,1)", "remove(1,0)", "only()", "only(99999)",
		"group(-2,1,1)", "group(99999999999999999999,1,1)",
	} {
		if x, err := topotree.ParseTransform(text); err == nil {
			t.Errorf("%q was taken as %s", text, x)
		}
	}
}

// TestTransformsThatDoNotFit checks the sentences a user reads.
func TestTransformsThatDoNotFit(t *testing.T) {
	m := topotest.Synthetic(t, "pack:2 numa:2 l3:4 core:4")
	for text, want := range map[string]string{
		"group(5,1,3)":   "group(5,1,3): 4 children per parent at depth 2 cannot be grouped 5 at a time",
		"group(2,4,3)":   "group(2,4,3): 4 children per parent at depth 2 cannot be grouped 2 at a time with stride 4",
		"group(2,1,9)":   "group(2,1,9): the tree ends at depth 5",
		"remove(4,3)":    "remove(4,3): a numa at depth 2 has 4 children and must keep at least one",
		"remove(1,3,7)":  "remove(1,3,7): no node at depth 2 has color 7, only 0",
		"only(3)":        "only(3): no PU has that color",
		"remove(1,6)":    "remove(1,6): the tree ends at depth 5",
		"remove(1,3,0)+": "use group(n,t,d)",
	} {
		x, err := topotree.ParseTransform(text)
		if err == nil {
			_, err = m.Tree.Apply(x)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	removed := topotest.Apply(t, m.Tree, "remove(1,4)")
	if _, err := removed.Apply(topotree.Group(3, 1, 4)); err == nil || !strings.Contains(err.Error(),
		"groups come before removes") {
		t.Errorf("group after remove: %v", err)
	}
	if m.Tree.PUs() != 64 || m.Tree.CPUs().Count() != 64 {
		t.Error("a transform changed the tree it was applied to")
	}
}

// TestDigest checks what the digest is blind to and what it sees.
func TestDigest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, m := range topotest.SmallMachines(t) {
		for range 5 {
			other := topotest.Renumbered(t, m, r)
			if other.Tree.Digest() != m.Tree.Digest() {
				t.Fatalf("%s: the digest sees PU numbers or the order of siblings", name)
			}
			for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{MaxTrees: 30}) {
				same, err := other.Tree.ApplyAll(tree.Transforms()...)
				if err != nil || same.Digest() != tree.Digest() {
					t.Fatalf("%s %v: renumbered, it gives another digest: %v", name, tree.Transforms(), err)
				}
			}
		}
	}
	all := map[topotree.Digest]string{}
	for name, m := range topotest.SmallMachines(t) {
		if other, taken := all[m.Tree.Digest()]; taken {
			t.Errorf("%s and %s share a digest", name, other)
		}
		all[m.Tree.Digest()] = name
	}
	m := topotest.Synthetic(t, "numa:2 core:12")
	seen := map[topotree.Digest]string{m.Tree.Digest(): "fundamental"}
	for _, text := range []string{
		"group(4,1,2)", "group(4,3,2)", "group(2,1,2)", "group(2,2,2)", "group(2,3,2)", "group(2,6,2)", "group(6,1,2)",
		"group(6,2,2)", "group(3,1,2)",
		"group(3,2,2)", "group(3,4,2)", "group(2,1,3)", "remove(1,2)", "remove(2,2)", "remove(1,1)", "group(12,1,2)",
	} {
		x, _ := topotree.ParseTransform(text)
		tree, err := m.Tree.Apply(x)
		if err != nil {
			continue
		}
		if other, taken := seen[tree.Digest()]; taken {
			t.Errorf("%s and %s share a digest", text, other)
		}
		seen[tree.Digest()] = text
	}
}

// TestNestedGroups checks that two sequences of transforms with the same nesting give one tree.
func TestNestedGroups(t *testing.T) {
	m := topotest.Synthetic(t, "core:12")
	for _, paths := range [][2][]string{
		{{"group(4,1,2)", "group(2,1,3)"}, {"group(2,1,2)", "group(2,1,2)"}},
		{{"group(6,2,2)", "group(3,1,3)"}, {"group(3,2,2)", "group(2,2,2)"}},
	} {
		a, b := topotest.Apply(t, m.Tree, paths[0]...), topotest.Apply(t, m.Tree, paths[1]...)
		if a.Digest() != b.Digest() {
			t.Errorf("%v and %v differ", paths[0], paths[1])
		}
	}
}

// TestInterchangeable checks that siblings that are marked as interchangeable give one tree for
// every stride.
func TestInterchangeable(t *testing.T) {
	m := topotest.Synthetic(t, "numa:2 core:12")
	alike := m.Tree.WithInterchangeable()
	a, b := topotest.Apply(t, alike, "group(4,1,2)"), topotest.Apply(t, alike, "group(4,3,2)")
	if a.Digest() != b.Digest() || alike.Digest() != m.Tree.Digest() {
		t.Error("the stride still counts")
	}
	var strided, plain enumerate.Stats
	for range enumerate.Trees(m.Tree, enumerate.Bounds{Stats: &strided}) {
	}
	for tree := range enumerate.Trees(alike, enumerate.Bounds{Stats: &plain}) {
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if plain.Kept >= strided.Kept || plain.Generated-plain.Duplicates != plain.Kept {
		t.Errorf("with strides %+v, without %+v", strided, plain)
	}
}

// TestDigestMeansAutomorphism compares equality of digests with the definition, on trees that only
// lost PUs: a permutation of PUs that maps the fundamental tree to itself and one set of PUs to the
// other.
func TestDigestMeansAutomorphism(t *testing.T) {
	for _, text := range []string{"pack:2 core:3", "numa:2 l3:2 core:2", "pack:3 core:2", "core:6"} {
		m := topotest.Synthetic(t, text)
		n := m.Tree.PUs()
		autos := automorphisms(m.Tree.Root(), n)
		type plan struct {
			cpus   topotree.CPUSet
			digest topotree.Digest
		}
		var plans []plan
		for bits := 1; bits < 1<<n; bits++ { // any set of PUs, not only those that remove reaches
			var keep []int
			for c := range n {
				if bits>>c&1 == 1 {
					keep = append(keep, c)
				}
			}
			set := topotree.NewCPUSet(keep...)
			plans = append(plans, plan{set, restrict(m.Tree, m.Tree.Root(), set).Digest()})
		}
		for i := range plans {
			for j := range plans[:i] {
				same := false
				for _, p := range autos {
					var image []int
					for c := range plans[i].cpus.All() {
						image = append(image, p[c])
					}
					if topotree.NewCPUSet(image...).Equal(plans[j].cpus) {
						same = true
						break
					}
				}
				if same != (plans[i].digest == plans[j].digest) {
					t.Fatalf("%s: %s and %s: automorphic %v, digests equal %v", text, plans[i].cpus,
						plans[j].cpus, same, !same)
				}
			}
		}
	}
}

// automorphisms lists every permutation of PUs that permutes siblings of equal digest.
func automorphisms(n *topotree.Node, pus int) [][]int {
	if len(n.Children) == 0 {
		p := make([]int, pus)
		for i := range p {
			p[i] = -1
		}
		p[n.ID] = n.ID
		return [][]int{p}
	}
	var out [][]int
	perms(len(n.Children), func(order []int) {
		maps := [][]int{make([]int, pus)}
		for i := range maps[0] {
			maps[0][i] = -1
		}
		for i, j := range order {
			from, to := n.Children[i], n.Children[j]
			if from.Digest() != to.Digest() {
				return
			}
			shift := to.CPUs.First() - from.CPUs.First() // siblings of a synthetic machine are shifted copies
			var next [][]int
			for _, base := range maps {
				for _, inner := range automorphisms(from, pus) {
					m := append([]int{}, base...)
					for c := range from.CPUs.All() {
						m[c] = inner[c] + shift
					}
					next = append(next, m)
				}
			}
			maps = next
		}
		out = append(out, maps...)
	})
	return out
}

func perms(n int, visit func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(k int)
	walk = func(k int) {
		if k == n {
			visit(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// restrict returns the nodes of a tree that hold PUs of a set, nil when none does.
func restrict(t *topotree.Tree, n *topotree.Node, set topotree.CPUSet) *topotree.Node {
	if !n.CPUs.Intersects(set) {
		return nil
	}
	out := *n
	out.Children = nil
	out.CPUs = n.CPUs.Intersect(set)
	for _, c := range n.Children {
		if k := restrict(t, c, set); k != nil {
			out.Children = append(out.Children, k)
		}
	}
	return t.Seal(&out)
}
