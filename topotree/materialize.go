package topotree

// materialize builds the nodes of a tree that Enumerate described by its transforms alone.
func (t *Tree) materialize() {}
