package candidates

import (
	"fmt"
	"slices"

	"sandwich/profiles"
	"sandwich/topotree"
)

// Names of configurations that are always among the candidates if the machine allows them.
const (
	AllPUs    = "all PUs"
	OneACore  = "one PU of each core"
	ForServer = "one core left for the server"
	Unpinned  = "unpinned" // simulated as all PUs on memory of all nodes; raced without pinning
	VLLM      = "one rank a NUMA node (vLLM)"
	VLLMTwo   = "one rank a NUMA node, 2 cores of each left out (vLLM)"
	VLLMPP    = "best even TP without removal (vllmpp)" // known only after the ranking
)

// always offers the configurations that a user would try without a search, and the baselines of the
// paper (Sandwich 8.1): vLLM divides a model evenly among NUMA nodes and may leave some cores of
// each rank free.
func (w *walk) always(p *profiles.Profile, tree *topotree.Tree) {
	all, cores := w.site.usable, w.site.cores
	if all.Count() > w.site.max { // the quota covers fewer
		all = p.FirstPUs(w.site.max)
		cores = all.Intersect(cores)
	}
	whole := []topotree.CPUSet{all}
	w.named(whole, all, AllPUs)
	w.named(whole, cores, OneACore)
	w.named(whole, w.without(all, w.lastCores(all, 1)), ForServer)
	w.named(whole, all, Unpinned)
	w.parts(tree, all)
	nodes := nodesWithin(w.site, all)
	if len(nodes) > 0 {
		var local topotree.CPUSet // cores next to memory
		for _, n := range nodes {
			local = local.Union(n.Intersect(cores))
		}
		w.named(nodes, local, VLLM)
		rest := local
		for _, n := range nodes {
			rest = w.without(rest, w.lastCores(n.Intersect(cores), 2))
		}
		w.named(nodes, rest, VLLMTwo)
	}
}

// named offers one set of PUs for both phases.
func (w *walk) named(ranks []topotree.CPUSet, pus topotree.CPUSet, name string) {
	if pus.IsEmpty() || !w.cuttable(len(ranks)) {
		return
	}
	w.offer(ranks, pus, pus, Origin{Section: "by name", Always: name})
}

// parts offers one socket, one node, and each color alone.
func (w *walk) parts(tree *topotree.Tree, all topotree.CPUSet) {
	for _, kind := range []topotree.Kind{topotree.KindPackage, topotree.KindNUMA} {
		d := tree.LevelOf(kind)
		if d < 0 {
			continue
		}
		for _, n := range tree.Level(d) {
			if part := n.CPUs.Intersect(all); !n.Virtual && part.Count() < all.Count() {
				w.named([]topotree.CPUSet{part}, part, fmt.Sprintf("%s %d alone", kind, n.ID))
			}
		}
	}
	colors := map[topotree.Color]topotree.CPUSet{}
	var order []topotree.Color
	tree.Walk(func(n *topotree.Node, _ int) bool {
		if n.Kind == topotree.KindPU && n.CPUs.In(all) {
			if colors[n.Color].IsEmpty() {
				order = append(order, n.Color)
			}
			colors[n.Color] = colors[n.Color].Union(n.CPUs)
		}
		return true
	})
	for _, c := range order {
		if len(order) > 1 {
			w.named([]topotree.CPUSet{colors[c]}, colors[c], fmt.Sprintf("color %s alone", c))
		}
	}
}

// nodesWithin returns the PUs of each memory node within a set. Nodes with the same PUs count once.
func nodesWithin(s *site, all topotree.CPUSet) (out []topotree.CPUSet) {
	for _, n := range s.nodes {
		part := n.CPUs.Intersect(all)
		if !part.IsEmpty() && !slices.ContainsFunc(out, part.Equal) {
			out = append(out, part)
		}
	}
	return out
}

// lastCores returns all PUs of the last n cores of a set.
func (w *walk) lastCores(set topotree.CPUSet, n int) topotree.CPUSet {
	firsts := set.Intersect(w.site.cores).Slice()
	var out topotree.CPUSet
	for i := max(0, len(firsts)-n); i < len(firsts); i++ {
		out = out.Union(w.capacity.coreOf(firsts[i]))
	}
	return out
}

// without returns a set without others, or the set itself if nothing would remain.
func (w *walk) without(set, others topotree.CPUSet) topotree.CPUSet {
	if rest := set.Minus(others); !rest.IsEmpty() {
		return rest
	}
	return set
}
