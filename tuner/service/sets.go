package service

import (
	"cmp"
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/topotree"
)

// Set is one choice of active PUs.
type Set struct {
	Name string // where it comes from: "all", "one per core", "remove(1,5)", "numa 1 alone"
	PUs  plans.PUSet
	// what the ceilings of the profile promise for the phase it was ranked for, B/s or FLOP/s; 0
	// when the profile has none
	Rate float64
}

// maxTrees bounds how many trees of the enumeration are looked at. Their sets are few beside that:
// trees that group differently and remove alike share them.
const maxTrees = 5000

// Sets lists the candidate sets of active PUs, largest first: the usable PUs, one PU of each core,
// what the removes of the enumerated trees leave, every color and every first node of a level
// alone, and halves. Each set is inside the PUs that this process may use and the quota pays for,
// and appears once under its first name.
func Sets(p *profiles.Profile) ([]Set, error) {
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, fmt.Errorf("no set of PUs to work on: %w", err)
	}
	c := &collector{usable: p.UsablePUs(), most: len(p.UsablePUs()), seen: map[string]bool{}}
	c.add("all usable PUs", c.usable)
	c.add("one PU per core", p.CorePUs())
	if p.QuotaPUs() == 0 {
		c.removes(tree, p.Groups())
	}
	c.parts(tree)
	for n := len(p.CorePUs()) / 2; n >= 1; n /= 2 {
		c.add(fmt.Sprintf("the first %d PUs", n), p.FirstPUs(n))
	}
	slices.SortStableFunc(c.sets, func(a, b Set) int { return cmp.Compare(len(b.PUs), len(a.PUs)) })
	return c.sets, nil
}

// collector keeps each set once.
type collector struct {
	usable []int
	most   int
	seen   map[string]bool
	sets   []Set
}

func (c *collector) add(name string, pus []int) {
	set := plans.PUSet(slices.Clone(pus))
	slices.Sort(set)
	key := set.String()
	if len(set) == 0 || len(set) > c.most || c.seen[key] {
		return
	}
	for _, pu := range set {
		if !slices.Contains(c.usable, pu) {
			return
		}
	}
	c.seen[key] = true
	c.sets = append(c.sets, Set{Name: name, PUs: set})
}

// removes adds what each remove-derived tree leaves (Sandwich 5.2): this is where one core less per
// cluster comes from. Groups that a measurement proposed come first.
func (c *collector) removes(tree *topotree.Tree, measured []topotree.Transform) {
	for t := range topotree.Enumerate(tree, topotree.Bounds{MaxTrees: maxTrees, First: measured}) {
		var name string
		for _, x := range t.Transforms() {
			if name != "" {
				name += " "
			}
			name += fmt.Sprint(x)
		}
		c.add(name, t.CPUs().Slice())
	}
}

// parts adds each color alone (the fast nodes, the P cores) and the first node of each kind alone.
func (c *collector) parts(tree *topotree.Tree) {
	byColor := map[topotree.Color][]int{}
	var colors []topotree.Color
	firsts := map[topotree.Kind]bool{}
	tree.Walk(func(n *topotree.Node, depth int) bool {
		if n.Kind == topotree.KindPU {
			if byColor[n.Color] == nil {
				colors = append(colors, n.Color)
			}
			byColor[n.Color] = append(byColor[n.Color], n.CPUs.Slice()...)
		} else if depth > 0 && !n.Virtual && !firsts[n.Kind] {
			firsts[n.Kind] = true
			c.add(fmt.Sprintf("%s %d alone", n.Kind, n.ID), n.CPUs.Slice())
		}
		return true
	})
	for _, color := range colors {
		c.add(fmt.Sprintf("color %s alone", color), byColor[color])
	}
}

// Prefill ranks sets by their peak, Decode by the memory bandwidth; best first, larger sets first
// where the profile tells no difference. Equal ranks keep the order of Sets.
func Prefill(p *profiles.Profile, isa, typ string, sets []Set) []Set {
	m := roofline.NewMachine(p)
	return rank(sets, func(set topotree.CPUSet) float64 {
		return m.Peak(set, roofline.Path{ISA: isa,
			Type: typ}).Value
	})
}

// Decode ranks sets for the decode phase; see Prefill. Of sets that reach the same bandwidth the
// smaller is better: the others contend.
func Decode(p *profiles.Profile, sets []Set) []Set {
	m := roofline.NewMachine(p)
	return rank(sets, func(set topotree.CPUSet) float64 { return m.Bandwidth(set, roofline.Local).Value })
}

func rank(sets []Set, rate func(topotree.CPUSet) float64) []Set {
	out := slices.Clone(sets)
	for i := range out {
		out[i].Rate = rate(topotree.NewCPUSet(out[i].PUs...))
	}
	slices.SortStableFunc(out, func(a, b Set) int { return cmp.Compare(b.Rate, a.Rate) })
	return out
}

// Top takes k of ranked sets: the best of each size in turn, then the second of each, since the
// ceilings tell sizes apart and only measurement tells sets of one size.
func Top(ranked []Set, k int) []Set {
	round := map[int]int{}
	order := make([]int, len(ranked))
	index := make([]int, len(ranked))
	for i, s := range ranked {
		order[i], index[i] = round[len(s.PUs)], i
		round[len(s.PUs)]++
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(order[a], order[b]) })
	var out []Set
	for _, i := range index[:min(k, len(index))] {
		out = append(out, ranked[i])
	}
	return out
}

// Join joins the sets of both phases into a service configuration of one rank.
func Join(p *profiles.Profile, prefill, decode Set) (plans.ServiceConfig, error) {
	all := slices.Concat(prefill.PUs, decode.PUs)
	slices.Sort(all)
	ranks, err := thumb.MakeRanks(p, slices.Compact(all), 1)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	return plans.NewService(ranks, prefill.PUs, decode.PUs)
}
