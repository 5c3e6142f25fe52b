package topotree

// Seal exports seal to tests.
func (t *Tree) Seal(n *Node) *Node { return t.seal(n) }
