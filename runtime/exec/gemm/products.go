package gemm

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Products computes the ops of one rank that multiply by weights, in one phase.
type Products struct {
	shard   *tp.Shard
	weights *Weights
	kinds   [][]*schedules // by worker kind and weight; nil for a weight that the rank does not hold

	// Heterogeneous workers; nil otherwise.
	throughput *Throughput
	shared     [][]sharedProduct // by op
	parts      []pool.Assignment // assignments, by number in the group
}

// Compile compiles the schedules that a phase has for the weights of all ranks. Weights of one
// shape share them. With heterogeneous workers it also returns a throughput model, for workers of
// the given kinds.
func Compile(kinds []Kind, phase *plans.Phase, shards []tp.Shard, weights []*Weights, heterogeneous bool,
	kindOf []int) ([]*Products, *Throughput, error) {
	byKey := make([]map[plans.WeightKey]*schedules, len(kinds))
	for i := range byKey {
		byKey[i] = map[plans.WeightKey]*schedules{}
	}
	var all []*Products
	for r := range shards {
		p := &Products{shard: &shards[r], weights: weights[r]}
		for i := range kinds {
			list, err := p.compileKind(&kinds[i], phase, byKey[i])
			if err != nil {
				return nil, nil, err
			}
			p.kinds = append(p.kinds, list)
		}
		all = append(all, p)
	}
	if !heterogeneous {
		return all, nil, nil
	}
	t := newThroughput(len(byKey[0]), len(shards[0].Model.Ops), kindOf)
	for _, p := range all {
		p.throughput = t
		p.share(len(kindOf))
	}
	for i, key := range slices.SortedFunc(maps.Keys(byKey[0]), plans.WeightKey.Compare) {
		for kind := range byKey {
			byKey[kind][key].meter = i
		}
	}
	return all, t, nil
}

func (r *Products) compileKind(kind *Kind, phase *plans.Phase, byKey map[plans.WeightKey]*schedules) ([]*schedules,
	error) {
	list := make([]*schedules, len(r.shard.Model.Weights))
	for i, w := range r.shard.Model.Weights {
		if !r.shard.Holds(i) {
			continue
		}
		key := plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}
		if byKey[key] == nil {
			s, err := newSchedules(kind, phase, key, r.weights.At(i).Compute)
			if err != nil {
				return nil, fmt.Errorf("weight %s (%s): %w", w.Role, w.Tensor.Name, err)
			}
			byKey[key] = s
		}
		list[i] = byKey[key]
	}
	return list, nil
}

// grid returns the Gemm of the main kind for m rows of weight i, whose slices are the chunks.
func (r *Products) grid(i, m int) *Gemm { return r.kinds[0][i].of(m) }

// product returns product i of an op of m rows. An op with a gated activation has one product of
// two weights.
func (r *Products) product(g *tp.Group, op *model.Op, i, m int) product {
	w := r.weights.At(op.W[i])
	own := r.kinds[g.Kind]
	p := product{gemm: own[op.W[i]].of(m), grid: r.grid(op.W[i], m), o: Operands{
		M: m, W: w,
		A: g.Acts.Base[op.In], AStride: 4 * g.Acts.Stride[op.In],
		C: g.Acts.Base[op.Outs[i]], CStride: 4 * g.Acts.Stride[op.Outs[i]],
		Scale: r.scaleOf(op.W[i], 0), Bias: biasOf(op, i, 0), Quantized: g.Acts.Quantized[w.Compute],
	}}
	p.gelu = op.Act == model.GELU
	if gated(op) {
		p.act = GLU[op.Act]
		p.up, p.upO = own[op.W[1]].of(m), p.o
		p.upO.W, p.upO.Scale, p.upO.Bias = r.weights.At(op.W[1]), r.scaleOf(op.W[1], 0), biasOf(op, 1, 0)
		p.upO.Quantized = g.Acts.Quantized[p.upO.W.Compute]
	}
	return p
}

// addTo makes X the result that the product adds to.
func (p *product) addTo(g *tp.Group, adds bool) {
	if p.sum = adds; adds {
		p.o.C, p.o.CStride = g.Acts.Base[model.BufX], 4*g.Acts.Stride[model.BufX]
	}
}

// biasOf returns the bias of weight i of an op, for one matrix of a stack; nil if it has none.
func biasOf(op *model.Op, i, matrix int) unsafe.Pointer {
	if op.Bias == nil || op.Bias[i] == nil {
		return nil
	}
	return unsafe.Pointer(&op.Bias[i].Data[matrix*op.Bias[i].N])
}

// scaleOf returns the factor of products of a weight, for one matrix of a stack; nil if it has
// none.
func (r *Products) scaleOf(weight, matrix int) *float32 {
	scale := r.shard.Model.Weights[weight].Scale
	if scale == nil {
		return nil
	}
	return &scale.Data[matrix]
}

// ScratchBytes returns the memory that a worker needs for products of forwards of so many rows.
func (r *Products) ScratchBytes(rows int) (largest int) {
	for _, list := range r.kinds {
		for _, s := range list {
			if s != nil {
				largest = max(largest, s.scratchBytes)
			}
		}
	}
	for i := range r.shard.Model.Ops {
		switch op := &r.shard.Model.Ops[i]; {
		case gated(op) && len(op.W) > 0:
			largest = max(largest, r.gatedScratch(op, rows))
		case op.Kind == model.OpMatMul:
			largest = max(largest, r.sumScratch(op, rows))
		}
	}
	return largest
}

// gatedScratch is the memory for a gated op: a segment of either factor and the widened panels of
// either weight.
func (r *Products) gatedScratch(op *model.Op, rows int) int {
	if r.kinds[0][op.W[0]] == nil { // not cut: another rank holds it
		return 0
	}
	rows = r.shard.Model.RowsOf(op.Outs[0], rows)
	largest := 0
	for _, list := range r.kinds {
		gate, up := list[op.W[0]], list[op.W[1]]
		segment := 0
		for _, rule := range gate.rules {
			segment = max(segment, rule.gemm.segmentSize(rows))
		}
		largest = max(largest, 2*segment+max(gate.scratchBytes, up.scratchBytes))
	}
	return largest
}

// sumScratch is the memory for an op that adds.
func (r *Products) sumScratch(op *model.Op, rows int) (largest int) {
	for _, list := range r.kinds {
		for _, wi := range op.W {
			if s := list[wi]; s != nil {
				for _, rule := range s.rules {
					largest = max(largest, rule.gemm.segmentSize(rows)+rule.gemm.ScratchBytes())
				}
			}
		}
	}
	return largest
}

// PrivateBytes returns the private memory that a worker needs for chunks of products, and of the
// quantization before them, of forwards of so many rows.
func (r *Products) PrivateBytes(rows int) (largest int) {
	m := r.shard.Model
	add := func(bytes int) {
		if bytes <= tp.MostPrivate {
			largest = max(largest, bytes)
		}
	}
	for i := range m.Ops {
		if op := &m.Ops[i]; len(op.W) > 0 && op.Kind != model.OpRotate {
			s, bytes := segmentsOf(m, op), 0
			for c := range tp.Paths {
				bytes += s.chunk * s.bytes(microkernel.Compute(c))
			}
			add(bytes)
		}
	}
	for _, s := range r.kinds[0] {
		for i := 0; s != nil && i < len(s.rules); i++ {
			add(s.rules[i].gemm.sliceBytes(m.RowsOf(model.BufExpert, rows)))
		}
	}
	return largest
}
