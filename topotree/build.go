package topotree

import (
	"fmt"
	"slices"
)

// Build completes a Machine from the fields that a reader filled (Online, Objects, Memory,
// CoreTypes, Distances): it cleans the objects, orders the levels, and colors and builds the tree.
// All readers use it, so that they give the same tree for the same machine.
func Build(m *Machine) (*Machine, error) {
	if m.Online.IsEmpty() {
		return nil, fmt.Errorf("the description has no online CPU")
	}
	objects, err := cleanObjects(m.Objects, m.Memory, m.Online)
	if err != nil {
		return nil, err
	}
	m.Objects = objects
	for i := range m.Memory {
		m.Memory[i].CPUs = m.Memory[i].CPUs.Intersect(m.Online)
	}
	m.Allowed = m.Allowed.Intersect(m.Online)
	m.Tree, m.Crossings, err = buildTree(m, m.Online)
	if err != nil {
		return nil, err
	}
	sortObjects(m)
	return m, nil
}

// cleanObjects removes offline PUs, duplicates, and dies and clusters that add nothing. It fails if
// objects of one kind overlap without being equal.
func cleanObjects(objects []Object, memory []MemoryNode, online CPUSet) ([]Object, error) {
	byKind := map[Kind][]Object{}
	seen := map[Kind]map[string]bool{KindNUMA: {}}
	for _, n := range memory {
		seen[KindNUMA][n.CPUs.Intersect(online).Key()] = true
	}
	for _, o := range objects {
		o.CPUs = o.CPUs.Intersect(online)
		key := o.CPUs.Key()
		if o.CPUs.IsEmpty() || seen[o.Kind][key] {
			continue
		}
		if seen[o.Kind] == nil {
			seen[o.Kind] = map[string]bool{}
		}
		seen[o.Kind][key] = true
		byKind[o.Kind] = append(byKind[o.Kind], o)
	}
	for _, kind := range []Kind{KindDie, KindCluster, KindGroup} {
		byKind[kind] = slices.DeleteFunc(byKind[kind], func(o Object) bool {
			return redundant(o, seen, online)
		})
	}
	var out []Object
	for kind := KindPackage; kind < KindPU; kind++ {
		if err := checkDisjoint(byKind[kind]); err != nil {
			return nil, err
		}
		out = append(out, byKind[kind]...)
	}
	return out, nil
}

// redundant reports whether an object of an unreliable kind has the same PUs as one of a reliable
// kind.
func redundant(o Object, seen map[Kind]map[string]bool, online CPUSet) bool {
	key := o.CPUs.Key()
	if o.CPUs.Count() == 1 || o.CPUs.Equal(online) {
		return true
	}
	for kind, sets := range seen {
		known := kind != KindDie && kind != KindCluster && kind != KindGroup
		stronger := kind != KindGroup && o.Kind == KindGroup || kind == KindDie && o.Kind == KindCluster
		if (known || stronger) && sets[key] {
			return true
		}
	}
	return false
}

func checkDisjoint(objects []Object) error {
	owner := map[int]int{}
	for i, o := range objects {
		for c := range o.CPUs.All() {
			if j, taken := owner[c]; taken {
				return fmt.Errorf("%s %s and %s overlap without being equal: the description is inconsistent",
					o.Kind, objects[j].CPUs, o.CPUs)
			}
			owner[c] = i
		}
	}
	return nil
}

// buildTree builds and colors the tree of the PUs in keep.
func buildTree(m *Machine, keep CPUSet) (*Tree, []Crossing, error) {
	levels := levelsOf(m, keep)
	levels, crossings := orderLevels(levels)
	levels = append(levels, levelSet{kind: KindPU})
	for c := range keep.All() {
		last := &levels[len(levels)-1]
		last.objects = append(last.objects, Object{Kind: KindPU, ID: c, CPUs: NewCPUSet(c)})
	}
	owners := make([][]int, len(levels)) // by level and PU: index of the object, -1 for none
	for i, level := range levels {
		owners[i] = ownersOf(level.objects, keep.Last()+1)
	}
	b := builder{levels: levels, owners: owners}
	root := b.node(Object{Kind: KindMachine, ID: 0, CPUs: keep}, 0, false)
	t, err := colorTree(m, root)
	return t, crossings, err
}

// levelsOf returns the levels between the machine and the PUs in the usual order.
func levelsOf(m *Machine, keep CPUSet) []levelSet {
	byKind := map[Kind][]Object{KindNUMA: numaLevel(m, keep)}
	for _, o := range m.Objects {
		o.CPUs = o.CPUs.Intersect(keep)
		if !o.CPUs.IsEmpty() {
			byKind[o.Kind] = append(byKind[o.Kind], o)
		}
	}
	if len(byKind[KindCore]) == 0 {
		byKind[KindCore] = nil
		for c := range keep.All() {
			byKind[KindCore] = append(byKind[KindCore], Object{Kind: KindCore, ID: c, CPUs: NewCPUSet(c)})
		}
	}
	var levels []levelSet
	for kind := KindPackage; kind < KindPU; kind++ {
		if len(byKind[kind]) > 0 {
			levels = append(levels, levelSet{kind, byKind[kind]})
		}
	}
	return levels
}

// numaLevel returns the NUMA nodes that can form a level: nonempty, one per set of PUs, and none
// whose set contains that of another node.
func numaLevel(m *Machine, keep CPUSet) []Object {
	var out []Object
	for _, n := range m.Localities() {
		set := n.CPUs.Intersect(keep)
		if set.IsEmpty() || slices.ContainsFunc(out, func(o Object) bool { return o.CPUs.Equal(set) }) {
			continue
		}
		out = append(out, Object{Kind: KindNUMA, ID: n.ID, CPUs: set, Bytes: n.Bytes})
	}
	slices.SortStableFunc(out, func(a, b Object) int { return a.CPUs.Count() - b.CPUs.Count() })
	var covered CPUSet
	return slices.DeleteFunc(out, func(o Object) bool {
		if o.CPUs.Intersects(covered) {
			return true
		}
		covered = covered.Union(o.CPUs)
		return false
	})
}

type builder struct {
	levels []levelSet
	owners [][]int
}

// node builds the node of o, whose children are at level.
func (b builder) node(o Object, level int, virtual bool) *Node {
	n := &Node{Kind: o.Kind, ID: o.ID, CPUs: o.CPUs, Bytes: o.Bytes, Virtual: virtual}
	if level == len(b.levels) {
		return n
	}
	rest := o.CPUs
	for c := range o.CPUs.All() {
		if !rest.Contains(c) {
			continue
		}
		child, isVirtual := b.childAt(c, level, rest)
		rest = rest.Minus(child.CPUs)
		n.Children = append(n.Children, b.node(child, level+1, isVirtual))
	}
	return n
}

// childAt returns the object of a level that contains PU c, limited to rest. If this part of the
// machine lacks the level, it returns a virtual object, so that all PUs have the same depth: at the
// level of a cache or node it covers all such PUs of the parent, below that a single core.
func (b builder) childAt(c, level int, rest CPUSet) (Object, bool) {
	objects, owner := b.levels[level].objects, b.owners[level]
	if i := owner[c]; i >= 0 {
		o := objects[i]
		o.CPUs = o.CPUs.Intersect(rest)
		return o, false
	}
	kind := b.levels[level].kind
	set := rest
	if kind == KindCluster || kind == KindL2 || kind == KindCore || kind == KindGroup {
		set = b.coreOf(c).Intersect(rest)
	}
	for p := range set.All() {
		if owner[p] >= 0 {
			set = set.Minus(objects[owner[p]].CPUs)
		}
	}
	return Object{Kind: kind, ID: -1, CPUs: set}, true
}

func (b builder) coreOf(c int) CPUSet {
	for i, level := range b.levels {
		if level.kind == KindCore && b.owners[i][c] >= 0 {
			return level.objects[b.owners[i][c]].CPUs
		}
	}
	return NewCPUSet(c)
}

// sortObjects sorts objects and memory nodes in tree order, equal ones by kind and ID, so that
// reports are comparable.
func sortObjects(m *Machine) {
	order := map[int]int{}
	var walk func(n *Node)
	walk = func(n *Node) {
		if len(n.Children) == 0 {
			order[n.ID] = len(order)
		}
		children := slices.Clone(n.Children)
		slices.SortFunc(children, func(a, b *Node) int { return a.CPUs.First() - b.CPUs.First() })
		for _, c := range children {
			walk(c)
		}
	}
	walk(m.Tree.Root())
	at := func(s CPUSet) int {
		best := len(order)
		for c := range s.All() {
			if p, ok := order[c]; ok {
				best = min(best, p)
			}
		}
		return best
	}
	slices.SortStableFunc(m.Objects, func(a, b Object) int {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		return at(a.CPUs) - at(b.CPUs)
	})
	slices.SortStableFunc(m.Memory, func(a, b MemoryNode) int { return a.ID - b.ID })
}

// Usable returns the tree of the PUs that a plan may use: Tree if all are allowed, else Tree
// without the other PUs, with colors refined if that breaks the symmetry. It fails if no PU is
// allowed.
func (m *Machine) Usable() (*Tree, error) {
	if m.Online.In(m.Allowed) {
		return m.Tree, nil
	}
	if !m.Online.Intersects(m.Allowed) {
		return nil, fmt.Errorf("no online CPU is allowed: cpuset and affinity permit %q of %s", m.Allowed, m.Online)
	}
	t, _, err := buildTree(m, m.Online.Intersect(m.Allowed))
	return t, err
}
