package exec

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Parts is a model divided among the tensor-parallel ranks of a plan: who holds what, and in which node's memory. Everything that a rank reads or
// writes alone (weights, KV cache, activations) is one buffer per rank.
type Parts struct {
	Whole *model.Model
	list  []part
}

// part is what one rank holds.
type part struct {
	share plans.Share
	model *model.Model // the same ops over this rank's heads, columns and words
	node  int          // NUMA node of its memory, or mem.AnyNode
	pus   plans.PUSet
	first bool // computes what is not cut
}

// Divide cuts the model for the ranks of the plan; a plan of one rank, or none, leaves it whole.
func Divide(m *model.Model, plan *plans.Plan) (*Parts, error) {
	p := &Parts{Whole: m}
	ranks := plan.Ranks
	if len(ranks) <= 1 {
		whole := plans.Share{Heads: plans.Span{Hi: m.Dims.Heads}, KVHeads: plans.Span{Hi: m.Dims.KVHeads}, Vocab: plans.Span{Hi: m.Dims.Vocab}}
		p.list = []part{{share: whole, model: m, node: mem.AnyNode, first: true}}
		for _, r := range ranks {
			p.list[0].node, p.list[0].pus = r.NUMANode, r.PUs
		}
		return p, nil
	}
	d, s := m.Dims, plan.Model
	if s.Heads != d.Heads || s.KVHeads != d.KVHeads || s.HeadDim != d.HeadDim || s.FFN != d.FFN || s.Vocab != d.Vocab || s.ExpertFFN != m.Experts.FFN {
		return nil, fmt.Errorf("the plan %s was made for a model of other sizes", plan.Name)
	}
	shares, err := plan.Shares()
	if err != nil {
		return nil, fmt.Errorf("the plan %s cannot be used: %w", plan.Name, err)
	}
	for i, s := range shares {
		p.list = append(p.list, part{share: s, model: m.Share(s), node: ranks[i].NUMANode, pus: ranks[i].PUs, first: i == 0})
	}
	return p, nil
}

// Ranks is the number of parts.
func (p *Parts) Ranks() int { return len(p.list) }

// holds tells whether the rank has a piece of weight i. What is not cut is with the first rank, and all of them compute it together.
func (p *part) holds(i int) bool { return p.first || p.model.Weights[i].Cut }

// Groups are the thread groups of a pool, one a rank, and what their gathers synchronize by. The executors that run on that pool share
// them.
type Groups struct {
	grouping *pool.Grouping
	sum      *AllReduce
}

// Groups prepares a pool for the ranks; nil where there is one. Not to be called during a run of it, nor inside Lead.
func (p *Parts) Groups(workers *pool.Pool, vec *microkernel.Vec) (*Groups, error) {
	grouping, err := p.Grouping(workers)
	if grouping == nil || err != nil {
		return nil, err
	}
	return &Groups{grouping, NewAllReduce(workers, vec, len(p.list))}, nil
}

// Grouping divides the workers of a pool among the ranks; nil where there is one. Not to be called during a run of it, nor inside Lead.
func (p *Parts) Grouping(workers *pool.Pool) (*pool.Grouping, error) {
	ranks := make([]plans.Rank, len(p.list))
	for r := range p.list {
		ranks[r].PUs = p.list[r].pus
	}
	return GroupWorkers(workers, ranks)
}

// GroupWorkers divides the workers of a pool by the ranks that their PUs belong to; nil where there is one rank. Not to be called during a run of the
// pool, nor inside Lead.
func GroupWorkers(workers *pool.Pool, ranks []plans.Rank) (*pool.Grouping, error) {
	if len(ranks) <= 1 {
		return nil, nil
	}
	groups := make([][]int, len(ranks))
	for index, pu := range workers.PUs() {
		r := slices.IndexFunc(ranks, func(r plans.Rank) bool { return slices.Contains(r.PUs, pu) })
		if r < 0 {
			return nil, fmt.Errorf("PU %d works for no rank of the plan", pu)
		}
		groups[r] = append(groups[r], index)
	}
	for r, g := range groups {
		if len(g) == 0 {
			return nil, fmt.Errorf("rank %d of the plan has no worker", r)
		}
	}
	return workers.NewGrouping(groups)
}

// rankOf is the rank that a PU works for, -1 for none; a single rank has all.
func (p *Parts) rankOf(pu int) int {
	if len(p.list) == 1 {
		return 0
	}
	return slices.IndexFunc(p.list, func(r part) bool { return slices.Contains(r.pus, pu) })
}

// PackedBytes is what LoadWeights will allocate; types without a layout count as nothing.
func (p *Parts) PackedBytes() (total int64) {
	for r := range p.list {
		total += p.list[r].packedBytes()
	}
	return total
}

func (p *part) packedBytes() (total int64) {
	for i := range p.model.Weights {
		if l, err := layoutOf(&p.model.Weights[i]); err == nil && p.holds(i) {
			total += int64(l.Bytes()) * int64(p.model.Weights[i].Matrices())
		}
	}
	return total + int64(p.tableBytes())
}

// tableBytes is what the rank keeps of the embedding beside its matrices: the first one all of it.
func (p *part) tableBytes() int {
	if !p.first {
		return 0
	}
	return tableBytes(p.model)
}

// PackedBytes is what LoadWeights allocates for a model of one rank.
func PackedBytes(m *model.Model) int64 {
	p := part{model: m, first: true}
	return p.packedBytes()
}

// KVBytesPerToken is what one cached position costs in all layers, a KV head that two ranks share counted twice.
func (p *Parts) KVBytesPerToken(elem microkernel.KVType) (total int) {
	for r := range p.list {
		d := p.list[r].model.Dims
		l := microkernel.KVLayout{HeadDim: d.HeadDim, Elem: elem}
		total += d.Layers * d.KVHeads * (l.KBytes() + l.VBytes()) / microkernel.KVBlock
	}
	return total
}
