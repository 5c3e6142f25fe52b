package topotree

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// painter assigns basic colors to PUs and refines them.
type painter struct {
	tree   *Tree
	color  map[int]int // basic color by PU
	infos  []ColorInfo
	splits []string
}

// colorTree colors a new tree and computes its digests: first by core type and NUMA distance class,
// then it splits colors whose nodes at some depth differ in shape, the deepest level first, until
// each color is symmetric and tileable (Sandwich 5.2). The numbering depends on properties and not
// on PU indexes, so that a renumbered machine gets the same colors.
func colorTree(m *Machine, root *Node) (*Tree, error) {
	t := &Tree{root: root, pus: root.CPUs.Count(), info: &treeInfo{memoryOnly: m.MemoryOnly()}}
	t.once.Do(func() {})
	p := &painter{tree: t, color: map[int]int{}}
	p.base(m, root.CPUs)
	return t, p.finish()
}

// finish refines the colors to a fixed point, sorts children into canonical order and completes the
// tree.
func (p *painter) finish() error {
	for {
		p.paint(p.tree.root)
		if !p.split() {
			break
		}
		if len(p.infos) > 1<<16-1 {
			return fmt.Errorf("the machine needs more than %d colors, since its parts are all distinct", 1<<16-1)
		}
	}
	for c, basic := range p.color {
		p.infos[basic].CPUs = p.infos[basic].CPUs.Union(NewCPUSet(c))
	}
	p.tree.info.palette, p.tree.info.splits = p.infos, p.splits
	canonical(p.tree.root)
	p.tree.digest = p.tree.root.digest
	return p.tree.Check()
}

// baseKey determines the color of a PU before shapes are compared: the indexes of its core type,
// NUMA distance class and measured class, each counted from the fastest.
type baseKey struct{ coreType, distance, measured int }

// base assigns the color of its classes to each PU.
func (p *painter) base(m *Machine, keep CPUSet) {
	distances := distanceClasses(m)
	keys := map[int]baseKey{}
	var used []baseKey
	for c := range keep.All() {
		k := baseKey{
			slices.IndexFunc(m.CoreTypes, func(t CoreType) bool { return t.CPUs.Contains(c) }),
			slices.IndexFunc(distances, func(s CPUSet) bool { return s.Contains(c) }),
			slices.IndexFunc(m.Measured, func(t MeasuredClass) bool { return t.CPUs.Contains(c) }),
		}
		if k.measured < 0 {
			k.measured = len(m.Measured) // PUs without a class form the last one
		}
		k.coreType, k.distance = max(0, k.coreType), max(0, k.distance)
		keys[c] = k
		if !slices.Contains(used, k) {
			used = append(used, k)
		}
	}
	slices.SortFunc(used, func(a, b baseKey) int {
		return cmp.Or(cmp.Compare(a.coreType, b.coreType), cmp.Compare(a.distance, b.distance),
			cmp.Compare(a.measured, b.measured))
	})
	for c, k := range keys {
		p.color[c] = slices.Index(used, k)
	}
	for _, k := range used {
		p.infos = append(p.infos, k.info(m, len(distances)))
	}
}

// info names the color of a key after the kinds of classes that the machine distinguishes.
func (k baseKey) info(m *Machine, distances int) ColorInfo {
	var names []string
	var info ColorInfo
	if len(m.CoreTypes) > 1 {
		names = append(names, m.CoreTypes[k.coreType].Name)
		info.Origins = append(info.Origins, OriginCoreType)
	}
	if distances > 1 {
		names = append(names, fmt.Sprintf("memory class %d", k.distance))
		info.Origins = append(info.Origins, OriginDistance)
	}
	if len(m.Measured) > 0 {
		name := "other"
		if k.measured < len(m.Measured) {
			name = m.Measured[k.measured].Name
		}
		names = append(names, name)
		info.Origins = append(info.Origins, OriginMeasured)
	}
	if info.Name = strings.Join(names, ", "); info.Name == "" {
		info.Name, info.Origins = "all", []ColorOrigin{OriginUniform}
	}
	return info
}

// paint colors all nodes and computes digests bottom-up.
func (p *painter) paint(n *Node) {
	if len(n.Children) == 0 {
		n.Color = BasicColor(p.color[n.ID])
	} else {
		n.Color = ""
		for _, c := range n.Children {
			p.paint(c)
			n.Color = n.Color.Union(c.Color)
		}
	}
	p.tree.seal(n)
}

// shapeClass counts the nodes of one depth and color with the same digest.
type shapeClass struct {
	digest Digest
	pus    int
	nodes  int
}

// split finds the deepest level with nodes of one color but distinct shapes and gives each shape
// its own color. It reports whether there was one.
func (p *painter) split() bool {
	for depth := p.tree.Depth(); depth >= 0; depth-- {
		level := p.tree.Level(depth)
		classes := map[Color][]shapeClass{}
		for _, n := range level {
			list := classes[n.Color]
			i := slices.IndexFunc(list, func(s shapeClass) bool { return s.digest == n.digest })
			if i < 0 {
				list, i = append(list, shapeClass{n.digest, n.CPUs.Count(), 0}), len(list)
			}
			list[i].nodes++
			classes[n.Color] = list
		}
		rank := map[int]int{} // rank of its node's shape, by PU
		for _, color := range sortedKeys(classes) {
			if list := classes[color]; len(list) > 1 {
				p.rankShapes(level, color, list, rank)
			}
		}
		if len(rank) > 0 {
			p.recolor(rank)
			return true
		}
	}
	return false
}

// rankShapes sorts the shapes of one color, the largest first, and stores each PU's rank.
func (p *painter) rankShapes(level []*Node, color Color, list []shapeClass, rank map[int]int) {
	slices.SortFunc(list, func(a, b shapeClass) int {
		return cmp.Or(cmp.Compare(b.nodes, a.nodes), cmp.Compare(b.pus, a.pus), bytes.Compare(a.digest[:], b.digest[:]))
	})
	text := ""
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d with %d PUs", s.nodes, s.pus)
	}
	p.splits = append(p.splits, fmt.Sprintf("%s nodes of color %s have distinct shapes (%s); each shape got its "+
		"own color", level[0].Kind, color, text))
	for _, n := range level {
		if n.Color != color {
			continue
		}
		r := slices.IndexFunc(list, func(s shapeClass) bool { return s.digest == n.digest })
		for c := range n.CPUs.All() {
			rank[c] = r
		}
	}
}

// recolor renumbers PUs by old color and rank, in the order of the old colors.
func (p *painter) recolor(rank map[int]int) {
	type key struct{ old, rank int }
	var used []key
	for c, old := range p.color {
		if k := (key{old, rank[c]}); !slices.Contains(used, k) {
			used = append(used, k)
		}
	}
	slices.SortFunc(used, func(a, b key) int { return cmp.Or(cmp.Compare(a.old, b.old), cmp.Compare(a.rank, b.rank)) })
	infos := make([]ColorInfo, len(used))
	index := map[key]int{}
	for i, k := range used {
		infos[i] = p.infos[k.old]
		infos[i].Origins = slices.Clone(infos[i].Origins)
		if k.rank > 0 {
			infos[i].Name = fmt.Sprintf("%s, shape %d", infos[i].Name, k.rank+1)
			if !infos[i].isShape() {
				infos[i].Origins = append(infos[i].Origins, OriginShape)
			}
		}
		index[k] = i
	}
	for c, old := range p.color {
		p.color[c] = index[key{old, rank[c]}]
	}
	p.infos = infos
}

// canonical sorts children by color, digest and lowest PU, the order in which group and remove
// count, and numbers them.
func canonical(n *Node) {
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Color, b.Color), bytes.Compare(a.digest[:], b.digest[:]),
			cmp.Compare(a.CPUs.First(), b.CPUs.First()))
	})
	for i, c := range n.Children {
		c.pos = i
		canonical(c)
	}
}
