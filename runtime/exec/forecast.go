package exec

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/modelshape"
)

// Forecast is the memory that one rank will use, in bytes, and its NUMA node, or mem.AnyNode.
type Forecast struct {
	Rank, Node  int
	Weights     int64
	KV          int64
	Activations int64 // of one set of Buffers
}

// Total returns the sum with a number of sets of activations.
func (f Forecast) Total(sets int) int64 { return f.Weights + f.KV + int64(sets)*f.Activations }

// ForecastMemory returns the memory that Open will use under the same options, from the plan alone.
// `plan verify` and `serve --dry-run` print it without reading the model.
func ForecastMemory(o Options) ([]Forecast, error) {
	m, err := modelshape.Outline(o.Plan.Model)
	if err != nil {
		return nil, err
	}
	shards, err := divideModel(m, o.Plan)
	if err != nil {
		return nil, err
	}
	var k tp.QuantizedK
	for _, w := range o.Plan.Weights {
		k.Add(w.Compute, w.K)
	}
	k.AddHeads(m, func(i int) (list []microkernel.Compute) {
		for _, w := range o.Plan.Weights {
			if w.N == m.Weights[i].N && w.K == m.Weights[i].K {
				list = append(list, w.Compute)
			}
		}
		return list
	})
	_, stores := o.stores(shards)
	out := make([]Forecast, len(shards.List))
	for r := range shards.List {
		f, own := &out[r], &shards.List[r]
		f.Rank, f.Node = r, mem.AnyNode
		if n := o.Plan.Ranks[r].NUMANode; n >= 0 {
			f.Node = n
		}
		for _, w := range o.Plan.Model.Weights {
			bytes, err := heldBytes(o.Plan, own.Share, r, w)
			if err != nil {
				return nil, err
			}
			f.Weights += bytes
		}
		f.KV = own.Layers.Bytes(o.Plan.KV, stores)
		f.Activations = int64(layOut(own, o.rows(m), o.LogitRows, k).total)
	}
	return out, nil
}

// CacheBytes returns the size of the KV cache of a model shape for so many blocks of 64 positions,
// so many sequences and forwards of at most `rows` rows. Rankings use it before there is a plan.
func CacheBytes(shape plans.ModelShape, elem microkernel.KVType, blocks, sequences, rows int) (int64, error) {
	m, err := modelshape.Outline(shape)
	if err != nil {
		return 0, err
	}
	layers, err := tp.LayersOf(m)
	if err != nil {
		return 0, err
	}
	return layers.Bytes(elem, kvcache.Sizes(layers.Kinds, blocks, sequences, rows)), nil
}

// heldBytes returns the memory of a rank for the matrices of a role: its part of those that are
// cut, and all or nothing of the others.
func heldBytes(plan *plans.Plan, sh plans.Share, rank int, w plans.WeightShape) (int64, error) {
	if w.Role == plans.RoleEmbed {
		tables := w.Count
		if plan.Model.Tied && w.K == plan.Model.Hidden {
			tables-- // it is the head
		}
		if rank > 0 {
			return 0, nil
		}
		t, err := gguf.ParseType(w.Type)
		if err != nil {
			return 0, err
		}
		return int64(t.RowBytes(w.K)) * int64(w.N) * int64(tables), nil
	}
	key := w.Key()
	if plan.TP() > 1 {
		rows, cols, cut := sh.Matrix(w.Role, plan.Model.HeadDim, w.N, w.K)
		if !cut && rank > 0 {
			return 0, nil
		}
		key.N, key.K = rows.Len(), cols.Len()
	}
	t, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		return 0, fmt.Errorf("weight %s: %w", key, err)
	}
	return int64(microkernel.Layout{Type: t, N: key.N, K: key.K}.Bytes()) * int64(w.Count), nil
}
