package topotree

import (
	"fmt"

	"sandwich/topotree/internal/verify"
)

// Source describes a tree whose nodes have not been built. Its methods may be called concurrently.
type Source interface {
	// Transforms returns the transforms that lead from the fundamental tree to this one.
	Transforms() []Transform
	// CPUs returns the PUs of the tree.
	CPUs() CPUSet
	// Full returns the tree without its removals.
	Full() *Tree
}

// NewLazyTree returns a transformed tree of t whose nodes are built when they are first used. The
// transforms of source must fit, and lead to the given digest and number of PUs.
func NewLazyTree(t *Tree, source Source, digest Digest, pus int) *Tree {
	return &Tree{base: t.Base(), info: t.info, source: source, digest: digest, pus: pus}
}

// build sets the root of a lazy tree.
func (t *Tree) build() {
	xs := t.source.Transforms()
	built, err := t.base.ApplyAll(xs...)
	if err != nil {
		panic(fmt.Sprintf("topotree: the transforms %v of a lazy tree do not fit: %v", xs, err))
	}
	if verify.Trees && (built.digest != t.digest || built.pus != t.pus) {
		panic(fmt.Sprintf("topotree: %v gives digest %s with %d PUs, expected %s with %d", xs, built.digest, built.pus,
			t.digest, t.pus))
	}
	t.root = built.root
}
