package topotest

import (
	"strings"
	"testing"

	"sandwich/topotree"
	"sandwich/topotree/enumerate"
	"sandwich/topotree/section"
)

// CheckSound checks the result of a reader: an error of one line, or a machine that survives a
// round trip through its description, and whose tree, usable part and enumerated trees are valid.
func CheckSound(t *testing.T, m *topotree.Machine, err error) {
	t.Helper()
	if err != nil {
		if m != nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("a refusal of more than one line, or with a machine: %v", err)
		}
		return
	}
	if err := m.Tree.Check(); err != nil {
		t.Fatal(err)
	}
	if !m.Tree.CPUs().Equal(m.Online) || !m.Allowed.In(m.Online) {
		t.Fatalf("online %s, allowed %s, tree %s", m.Online, m.Allowed, m.Tree.CPUs())
	}
	if u, err := m.Usable(); err == nil {
		if err := u.Check(); err != nil || !u.CPUs().In(m.Allowed) {
			t.Fatalf("usable: %v", err)
		}
	}
	if m.Tree.PUs() > 64 {
		return
	}
	back, err := m.Describe().Machine()
	if err != nil || back.Tree.Digest() != m.Tree.Digest() {
		t.Fatalf("described and read back, it is another machine: %v", err)
	}
	for tree := range enumerate.Trees(m.Tree, enumerate.Bounds{MaxTrees: 20}) {
		if err := tree.Check(); err != nil {
			t.Fatalf("%v: %v", tree.Transforms(), err)
		}
		section.Of(tree)
	}
}
