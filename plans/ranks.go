package plans

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Shares is what each rank of the plan holds of its model: a rank with more PUs holds more.
func (p *Plan) Shares() ([]Share, error) {
	weights := make([]int, len(p.Ranks))
	for i, r := range p.Ranks {
		weights[i] = len(r.PUs)
	}
	return p.Model.Cut(weights)
}

// KVBytesPerToken is the size of the keys and values of one token over all layers and ranks, in
// bytes: a KV head that ranks share counts for each of them.
func (p *Plan) KVBytesPerToken() int64 {
	s := p.Model
	if shares, err := p.Shares(); err == nil {
		s.KVHeads = 0
		for _, sh := range shares {
			s.KVHeads += sh.KVHeads.Len()
		}
	}
	return s.KVBytesPerToken(p.KV)
}

// KeyOf is what a rank holds of a weight: the key of its table.
func (p *Plan) KeyOf(rank int, w WeightShape) WeightKey {
	key := w.Key()
	if shares, err := p.Shares(); err == nil && len(shares) > 1 {
		rows, cols, _ := shares[rank].Matrix(w.Role, p.Model.HeadDim, w.N, w.K)
		key.N, key.K = rows.Len(), cols.Len()
	}
	return key
}

// Piece is a shape that each phase keeps a table for.
type Piece struct {
	WeightKey
	Compute microkernel.Compute // of the whole matrices (rule 6)
	Threads int                 // most PUs that work on one such product
	Apart   bool                // each rank has products of its own; else all compute them together
}

// Pieces lists the tables that each phase needs, in their order, for a set of active PUs.
func (p *Plan) Pieces(active PUSet) ([]Piece, error) {
	shares, err := p.Shares()
	if err != nil {
		return nil, err
	}
	var out []Piece
	for _, c := range p.Model.pieces(shares) {
		compute, err := p.computeOf(c)
		if err != nil {
			return nil, err
		}
		out = append(out, Piece{WeightKey: c.WeightKey, Compute: compute, Threads: slices.Max(p.threads(c, active)),
			Apart: !c.together})
	}
	return out, nil
}

// piece is a shape that a table is kept for: matrices of one shape as the ranks hold them.
type piece struct {
	WeightKey
	of       []WeightKey // the whole matrices, which name the compute path
	ranks    []int       // that hold it
	together bool        // among them is a matrix that all ranks compute together
}

// pieces lists the tables that each phase needs, sorted.
func (s ModelShape) pieces(shares []Share) []piece {
	var out []piece
	for _, w := range s.RankWeights(shares) {
		if n := len(out); n == 0 || out[n-1].WeightKey != w.WeightKey {
			out = append(out, piece{WeightKey: w.WeightKey})
		}
		last := &out[len(out)-1]
		last.of = append(last.of, w.Of)
		if w.Together {
			last.together = true
		} else {
			last.ranks = append(last.ranks, w.Ranks...)
		}
	}
	return out
}

// computeOf is the path that the plan gives the matrices of a piece.
func (p *Plan) computeOf(c piece) (path microkernel.Compute, err error) {
	for i, k := range c.of {
		w, ok := p.Weight(k)
		switch {
		case !ok:
			return path, fmt.Errorf("weights says nothing of %s", k)
		case i > 0 && w.Compute != path:
			return path, fmt.Errorf("the ranks hold pieces %s of %s and of %s, which compute in %s and in %s: "+
				"one table cannot serve both", c.WeightKey, c.of[0], k, path, w.Compute)
		}
		path = w.Compute
	}
	return path, nil
}

// intersect is what two sets have in common.
func (s PUSet) intersect(o PUSet) (out PUSet) {
	for _, pu := range s {
		if slices.Contains(o, pu) {
			out = append(out, pu)
		}
	}
	return out
}

// MakeRanks divides PUs among n ranks: along the sections of the machine's tree where one has n
// parts of these PUs (Sandwich 5.3), else into contiguous ranges of its leaves. Each rank is bound
// to the NUMA node that holds all of its PUs, if one does.
func MakeRanks(p *profiles.Profile, pus PUSet, n int) ([]Rank, error) {
	if n < 1 || n > len(pus) {
		return nil, fmt.Errorf("%d ranks on %d PUs (%s): each rank needs a PU of its own, and there must be at "+
			"least one", n, len(pus), pus)
	}
	if n == 1 {
		return []Rank{{PUs: pus, NUMANode: commonNode(p.Machine, pus)}}, nil
	}
	parts := alongTree(p.Machine, pus, n)
	out := make([]Rank, n)
	for i, part := range parts {
		slices.Sort(part)
		out[i] = Rank{PUs: part, NUMANode: commonNode(p.Machine, part)}
	}
	return out, nil
}

// alongTree cuts PUs in n parts, none of them empty.
func alongTree(m *topotree.Machine, pus PUSet, n int) []PUSet {
	order := pus
	if tree, err := m.Usable(); err == nil {
		for _, s := range tree.Sections() {
			if parts := partsOf(s, pus); s.TP == n && len(parts) == n {
				return parts
			}
		}
		order = leaves(tree, pus)
	}
	out := make([]PUSet, n)
	for i := range out {
		out[i] = slices.Clone(order[i*len(order)/n : (i+1)*len(order)/n])
	}
	return out
}

// partsOf is what each rank of a section has of the PUs; nil where some are in none.
func partsOf(s topotree.Section, pus PUSet) (out []PUSet) {
	found := 0
	for _, r := range s.Ranks {
		if part := pus.intersect(PUSet(r.Prefill.Slice())); len(part) > 0 {
			out = append(out, part)
			found += len(part)
		}
	}
	if found < len(pus) {
		return nil
	}
	return out
}

// leaves orders PUs as the tree does, so that neighbours in the list share caches and nodes.
func leaves(tree *topotree.Tree, pus PUSet) (out PUSet) {
	tree.Walk(func(n *topotree.Node, _ int) bool {
		if n.Kind == topotree.KindPU {
			out = append(out, pus.intersect(PUSet(n.CPUs.Slice()))...)
		}
		return true
	})
	for _, pu := range pus {
		if !slices.Contains(out, pu) {
			out = append(out, pu)
		}
	}
	return out
}

// FirstOfEach takes n of the active PUs: the first of each rank, then the second of each, and so
// on.
func FirstOfEach(ranks []Rank, active PUSet, n int) (out PUSet) {
	for turn := 0; len(out) < n; turn++ {
		for _, r := range ranks {
			seen := 0
			for _, pu := range active {
				if !slices.Contains(r.PUs, pu) {
					continue
				}
				if seen == turn && len(out) < n {
					out = append(out, pu)
				}
				seen++
			}
		}
	}
	slices.Sort(out)
	return out
}
