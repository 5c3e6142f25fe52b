package plans

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
)

// Shares is what each rank of the plan holds of its model: a rank with more PUs holds more.
func (p *Plan) Shares() ([]Share, error) {
	weights := make([]int, len(p.Ranks))
	for i, r := range p.Ranks {
		weights[i] = len(r.PUs)
	}
	return p.Model.Cut(weights)
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

// TableShape is a shape that each phase keeps a table for.
type TableShape struct {
	WeightKey
	Compute microkernel.Compute // of the whole matrices (rule 6)
	Threads int                 // most PUs that work on one such product
	Apart   bool                // each rank has products of its own; else all compute them together
}

// TableShapes lists the tables that each phase needs, in their order, for a set of active PUs.
func (p *Plan) TableShapes(active PUSet) ([]TableShape, error) {
	shares, err := p.Shares()
	if err != nil {
		return nil, err
	}
	var out []TableShape
	for _, c := range p.Model.tableShapes(shares) {
		compute, err := p.computeOf(c)
		if err != nil {
			return nil, err
		}
		out = append(out, TableShape{WeightKey: c.WeightKey, Compute: compute, Threads: slices.Max(p.threads(c,
			active)),
			Apart: !c.together})
	}
	return out, nil
}

// tableShape is a shape that a table is kept for: matrices of one shape as the ranks hold them.
type tableShape struct {
	WeightKey
	of       []WeightKey // the whole matrices, which name the compute path
	ranks    []int       // that hold it
	together bool        // among them is a matrix that all ranks compute together
}

// tableShapes lists the tables that each phase needs, sorted.
func (s ModelShape) tableShapes(shares []Share) []tableShape {
	var out []tableShape
	for _, w := range s.rankWeights(shares) {
		if n := len(out); n == 0 || out[n-1].WeightKey != w.WeightKey {
			out = append(out, tableShape{WeightKey: w.WeightKey})
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

// computeOf is the path that the plan gives the matrices of a table shape.
func (p *Plan) computeOf(c tableShape) (path microkernel.Compute, err error) {
	for i, k := range c.of {
		w, ok := p.Weight(k)
		switch {
		case !ok:
			return path, fmt.Errorf("weights says nothing of %s", k)
		case i > 0 && w.Compute != path:
			return path, fmt.Errorf("the ranks hold shards %s of %s and of %s, which compute in %s and in %s: "+
				"one table cannot serve both", c.WeightKey, c.of[0], k, path, w.Compute)
		}
		path = w.Compute
	}
	return path, nil
}
