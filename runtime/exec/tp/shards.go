package tp

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// Shards is a model divided among the tensor-parallel ranks of a plan. Each rank has one buffer for
// what it alone reads or writes: weights, KV cache, activations.
type Shards struct {
	Whole  *model.Model
	Layers Layers // of the whole model
	List   []Shard
}

// Shard is the part of a model that one rank holds.
type Shard struct {
	Share  plans.Share
	Model  *model.Model // the same ops over the heads, columns and words of the rank
	Layers Layers
	Node   int // NUMA node of its memory, or mem.AnyNode
	PUs    topotree.CPUSet
	First  bool // computes what is not cut
}

// Divide cuts a model for the ranks of a plan. One rank or none leaves it whole. A plan for a model
// of other sizes is an error.
func Divide(m *model.Model, plan *plans.Plan) (*Shards, error) {
	layers, err := LayersOf(m)
	if err != nil {
		return nil, err
	}
	p := &Shards{Whole: m, Layers: layers}
	ranks := plan.Ranks
	if len(ranks) <= 1 {
		whole := plans.Share{Heads: plans.Span{Hi: m.Dims.Heads}, KVHeads: plans.Span{Hi: m.Dims.KVHeads},
			Vocab: plans.Span{Hi: m.Dims.Vocab}}
		p.List = []Shard{{Share: whole, Model: m, Layers: layers, Node: mem.AnyNode, First: true}}
		for _, r := range ranks {
			p.List[0].Node, p.List[0].PUs = r.NUMANode, r.PUs
		}
		return p, nil
	}
	d, s := m.Dims, plan.Model
	if s.Heads != d.Heads || s.KVHeads != d.KVHeads || s.HeadDim != d.HeadDim || s.FFN != d.FFN || s.Vocab != d.Vocab ||
		s.ExpertFFN != m.Experts.FFN {
		return nil, fmt.Errorf("plan %s is for a model of other sizes; tune a plan for this model", plan.Name)
	}
	shares, err := plan.Shares()
	if err != nil {
		return nil, fmt.Errorf("plan %s does not divide the model: %w", plan.Name, err)
	}
	for i, s := range shares {
		own := Shard{Share: s, Model: m.Share(s), Node: ranks[i].NUMANode, PUs: ranks[i].PUs, First: i == 0}
		if own.Layers, err = LayersOf(own.Model); err != nil {
			return nil, err
		}
		p.List = append(p.List, own)
	}
	return p, nil
}

// Ranks returns the number of ranks.
func (p *Shards) Ranks() int { return len(p.List) }

// Holds reports whether the rank holds part of weight i. The first rank holds weights that are not
// cut, and all ranks compute their products together.
func (p *Shard) Holds(i int) bool { return p.First || p.Model.Weights[i].Cut }

// RankOf returns the rank that a PU works for, or -1. A single rank has all PUs.
func (p *Shards) RankOf(pu int) int {
	if len(p.List) == 1 {
		return 0
	}
	return slices.IndexFunc(p.List, func(r Shard) bool { return r.PUs.Contains(pu) })
}

// KVBytes returns the size of stores with the given numbers of blocks. A KV head of two ranks
// counts twice.
func (p *Shards) KVBytes(elem microkernel.KVType, specs []kvcache.Spec) (total int64) {
	for r := range p.List {
		total += p.List[r].Layers.Bytes(elem, specs)
	}
	return total
}
