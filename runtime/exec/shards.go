package exec

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Shards is a model divided among the tensor-parallel ranks of a plan: who holds what, and in which
// node's memory. Everything that a rank reads or writes alone (weights, KV cache, activations) is
// one buffer per rank.
type Shards struct {
	Whole  *model.Model
	Layers Layers // what they remember
	list   []shard
}

// shard is what one rank holds.
type shard struct {
	share  plans.Share
	model  *model.Model // the same ops over this rank's heads, columns and words
	layers Layers       // what its layers remember
	node   int          // NUMA node of its memory, or mem.AnyNode
	pus    plans.PUSet
	first  bool // computes what is not cut
}

// divideModel cuts the model for the ranks of the plan; a plan of one rank, or none, leaves it
// whole. A model that asks for what no op here computes is refused by name.
func divideModel(m *model.Model, plan *plans.Plan) (*Shards, error) {
	if err := checkValues(m); err != nil {
		return nil, err
	}
	layers, err := layersOf(m)
	if err != nil {
		return nil, err
	}
	p := &Shards{Whole: m, Layers: layers}
	ranks := plan.Ranks
	if len(ranks) <= 1 {
		whole := plans.Share{Heads: plans.Span{Hi: m.Dims.Heads}, KVHeads: plans.Span{Hi: m.Dims.KVHeads},
			Vocab: plans.Span{Hi: m.Dims.Vocab}}
		p.list = []shard{{share: whole, model: m, layers: layers, node: mem.AnyNode, first: true}}
		for _, r := range ranks {
			p.list[0].node, p.list[0].pus = r.NUMANode, r.PUs
		}
		return p, nil
	}
	d, s := m.Dims, plan.Model
	if s.Heads != d.Heads || s.KVHeads != d.KVHeads || s.HeadDim != d.HeadDim || s.FFN != d.FFN || s.Vocab != d.Vocab ||
		s.ExpertFFN != m.Experts.FFN {
		return nil, fmt.Errorf("the plan %s was made for a model of other sizes", plan.Name)
	}
	shares, err := plan.Shares()
	if err != nil {
		return nil, fmt.Errorf("the plan %s cannot be used: %w", plan.Name, err)
	}
	for i, s := range shares {
		own := shard{share: s, model: m.Share(s), node: ranks[i].NUMANode, pus: ranks[i].PUs, first: i == 0}
		if own.layers, err = layersOf(own.model); err != nil {
			return nil, err
		}
		p.list = append(p.list, own)
	}
	return p, nil
}

// Ranks is the number of parts.
func (p *Shards) Ranks() int { return len(p.list) }

// holds tells whether the rank has a piece of weight i. What is not cut is with the first rank, and
// all of them compute it together.
func (p *shard) holds(i int) bool { return p.first || p.model.Weights[i].Cut }

// rankOf is the rank that a PU works for, -1 for none; a single rank has all.
func (p *Shards) rankOf(pu int) int {
	if len(p.list) == 1 {
		return 0
	}
	return slices.IndexFunc(p.list, func(r shard) bool { return slices.Contains(r.pus, pu) })
}

// PackedBytes is what loadWeights will allocate; types without a layout count as nothing.
func (p *Shards) PackedBytes() (total int64) {
	for r := range p.list {
		total += p.list[r].packedBytes()
	}
	return total
}

func (p *shard) packedBytes() (total int64) {
	for i := range p.model.Weights {
		if l, err := layoutOf(&p.model.Weights[i]); err == nil && p.holds(i) {
			total += int64(l.Bytes()) * int64(p.model.Weights[i].Matrices())
		}
	}
	return total + int64(p.tableBytes())
}

// tableBytes is what the rank keeps of the embedding beside its matrices: the first one all of it.
func (p *shard) tableBytes() int {
	if !p.first {
		return 0
	}
	return tableBytes(p.model)
}

// kvBytes is what the stores of these sizes take, a KV head that two ranks share counted twice.
func (p *Shards) kvBytes(elem microkernel.KVType, specs []kvcache.Spec) (total int64) {
	for r := range p.list {
		total += p.list[r].layers.bytes(elem, specs)
	}
	return total
}
