package topotree

// Op names a transform.
type Op string

// The transforms. Only is "each color alone": it keeps the PUs of one color.
const (
	OpGroup  Op = "group"
	OpRemove Op = "remove"
	OpOnly   Op = "only"
)

// Transform is one step from a tree to another, with the text forms group(n,t,d), remove(n,d), remove(n,d,color)
// and only(color). The root is depth 0.
type Transform struct {
	Op    Op
	N     int   // group: nodes taken together; remove: children that go
	T     int   // group: stride
	D     int   // group: depth of the new nodes; remove: depth of the children that go
	Color Color // remove: the color of the parents, "" for all; only: the color that stays
}
