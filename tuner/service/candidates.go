package service

import (
	"fmt"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Options narrow what Candidates offers. The zero value narrows nothing.
type Options struct {
	TP      int // only this tensor-parallel degree; 0: all
	Threads int // at most so many PUs in a phase; 0: no such bound
	Tokens  int // positions that the KV cache must hold; 0: one sequence of the model's context, at most 4096
	KV      int64
}

// Space is what a walk over trees and sections found.
type Space struct {
	Trees     int  // that the enumeration offered
	Truncated bool // there were more, which nobody looked at
	Configs   []*Config
	Refused   map[string]int // how many configurations were refused, by reason
}

// Walks end where the PUs that they looked at, tree by tree, are so many: a tenth of a minute.
const (
	maxTreePUs = 2e8
	maxConfigs = 300000
)

// Candidates walks every enumerated tree (Sandwich 5.2) and every section of it (5.3), and offers
// each service configuration once: prefill on the full PUs of the ranks, on one PU of each of their
// cores, and on the PUs of decode. It leaves out what the model cannot be cut by, what a memory
// node has no room for, and PUs that may not be used or that the quota does not pay for. The
// configurations of always come first.
func Candidates(p *profiles.Profile, shape plans.ModelShape, o Options) (*Space, error) {
	tree, err := p.Machine.Usable()
	if err != nil {
		return nil, fmt.Errorf("no PU to work on: %w", err)
	}
	w := &walk{site: newSite(p), room: newRoom(p, shape, o), o: o, shape: shape, tps: map[int]error{},
		seen: map[string]bool{}, cuts: map[*topotree.Tree][]cut{}, met: map[meeting]bool{},
		space: &Space{Refused: map[string]int{}}}
	if o.Threads > 0 {
		w.site.most = min(w.site.most, o.Threads)
	}
	w.always(p, tree)
	var stats topotree.Stats
	bounds := topotree.Bounds{First: p.Groups(), Stats: &stats, MaxTrees: max(1000, int(maxTreePUs)/tree.PUs())}
	for t := range topotree.Enumerate(tree, bounds) {
		w.tree(t)
		if len(w.space.Configs) >= maxConfigs {
			stats.Truncated = true
			break
		}
	}
	w.space.Trees, w.space.Truncated = stats.Kept, stats.Truncated
	if len(w.space.Configs) == 0 {
		return w.space, fmt.Errorf("no service configuration fits: %s", w.space.why())
	}
	return w.space, nil
}

// walk is one enumeration under way.
type walk struct {
	site  *site
	room  *room
	o     Options
	shape plans.ModelShape
	tps   map[int]error // by degree, whether the model can be cut for it
	seen  map[string]bool
	cuts  map[*topotree.Tree][]cut // by the tree before removing
	met   map[meeting]bool
	kept  map[string]int // number of a set of PUs
	space *Space
}

// cut is a section of a tree that lost nothing yet.
type cut struct {
	name  string
	nodes []topotree.CPUSet
}

// meeting is a section and the PUs that are kept, by number: most trees of an enumeration bring
// none that was not there before.
type meeting struct {
	cut  string
	kept string
}

// cutsOf are the sections of a full tree, each partition once.
func (w *walk) cutsOf(full *topotree.Tree) []cut {
	if cuts, ok := w.cuts[full]; ok {
		return cuts
	}
	var out []cut
	seen := 0
	for d := 0; d <= full.Depth(); d++ {
		level := full.Level(d)
		if len(level) == seen {
			continue // it repeats the section above
		}
		seen = len(level)
		c := cut{name: level[0].Kind.String()}
		if level[0].Kind == topotree.KindGroup {
			c.name = fmt.Sprintf("group at depth %d", d)
		}
		for _, n := range level {
			c.nodes = append(c.nodes, n.CPUs)
		}
		out = append(out, c)
	}
	w.cuts[full] = out
	return out
}

// tree offers the configurations of one tree.
func (w *walk) tree(t *topotree.Tree) {
	decode, full := t.CPUs(), t.Full()
	kept := decode.Key()
	for _, c := range w.cutsOf(full) {
		var ranks []topotree.CPUSet
		var prefill topotree.CPUSet
		var id []byte
		for _, n := range c.nodes {
			if !n.Intersects(decode) {
				continue
			}
			if len(ranks) == maxDegree {
				ranks = nil
				break
			}
			ranks = append(ranks, n)
			prefill = prefill.Union(n)
			id = append(append(id, n.Key()...), '/')
		}
		if len(ranks) == 0 || !w.cuttable(len(ranks)) {
			continue
		}
		m := meeting{string(id), kept}
		if w.met[m] {
			continue
		}
		w.met[m] = true
		w.variants(ranks, prefill, decode, Origin{Tree: t, Section: c.name})
	}
}

// maxDegree is the largest tensor-parallel degree that is looked at.
const maxDegree = 256

// variants offers a section with its choices of prefill PUs.
func (w *walk) variants(ranks []topotree.CPUSet, prefill, decode topotree.CPUSet, o Origin) {
	w.offer(ranks, prefill, decode, o)
	if cores := prefill.Intersect(w.site.cores); !cores.Equal(prefill) && !cores.Equal(decode) {
		o.Variant = "prefill on one PU of each core"
		w.offer(ranks, cores, decode, o)
	}
	if !prefill.Equal(decode) {
		o.Variant = "prefill as decode"
		w.offer(ranks, decode, decode, o)
	}
}

// cuttable tells whether the model can be cut for so many ranks.
func (w *walk) cuttable(ranks int) bool {
	if w.o.TP > 0 && ranks != w.o.TP {
		return false
	}
	err, known := w.tps[ranks]
	if !known {
		err = w.shape.Partition(ranks)
		w.tps[ranks] = err
	}
	if err != nil {
		w.space.Refused["the model cannot be cut for their ranks"]++
	}
	return err == nil
}

// offer adds a configuration that is new and that fits.
func (w *walk) offer(ranks []topotree.CPUSet, prefill, decode topotree.CPUSet, o Origin) *Config {
	if !w.site.fits(prefill, decode) {
		w.space.Refused["more PUs than may be used at once"]++
		return nil
	}
	c, ok := newConfig(w.site, ranks, prefill, decode, o)
	if !ok {
		w.space.Refused["a rank without PUs or without memory"]++
		return nil
	}
	if key := c.key(); o.Always == "" { // several names of what is always there are told apart
		if w.seen[key] {
			return nil
		}
		w.seen[key] = true
	}
	if err := w.room.fits(c); err != nil {
		w.space.Refused[err.Error()]++
		return nil
	}
	w.space.Configs = append(w.space.Configs, c)
	return c
}

// why is the commonest reason for which configurations were refused.
func (s *Space) why() string {
	most := "the machine has no usable PU"
	n := 0
	for reason, times := range s.Refused {
		if times > n || times == n && reason < most {
			most, n = reason, times
		}
	}
	return most
}
