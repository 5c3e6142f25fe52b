package load

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Weights are all matrices of a model, packed once for both phases (DESIGN rule 5). Each rank has
// its part in memory of its own.
type Weights struct {
	Tokens Table // embeddings of the tokens
	Inputs Table // the layers' own inputs; empty if the model has none

	ranks []rankWeights
}

// rankWeights are the weights of one rank.
type rankWeights struct {
	gemm.Weights
	table  unsafe.Pointer // tables in the form of the file, after the packed matrices of the first rank; else nil
	memory *mem.Buffer
}

// Of returns the weights of a rank.
func (w *Weights) Of(rank int) *gemm.Weights { return &w.ranks[rank].Weights }

// At returns the part of weight i of the model, or of the first matrix of its stack, that a rank
// holds; nil if it holds none.
func (w *Weights) At(rank, i int) *gemm.Packed {
	if w.ranks[rank].First[i] < 0 {
		return nil
	}
	return w.ranks[rank].At(i)
}

// Ranks returns the number of ranks.
func (w *Weights) Ranks() int { return len(w.ranks) }

// Bytes returns the size of all packed weights and tables.
func (w *Weights) Bytes() (total int64) {
	for r := range w.ranks {
		total += int64(w.ranks[r].memory.Len())
	}
	return total
}

// Memory returns the buffer of a rank.
func (w *Weights) Memory(rank int) *mem.Buffer { return w.ranks[rank].memory }

// Residency returns the NUMA nodes on which the packed weights of a rank are.
func (w *Weights) Residency(rank int) (mem.Residency, error) {
	return w.ranks[rank].memory.Residency()
}

// Free releases the memory. No forward may run then or later.
func (w *Weights) Free() (err error) {
	for r := range w.ranks {
		if m := w.ranks[r].memory; m != nil {
			err = errors.Join(err, m.Free())
		}
	}
	return err
}

// QuantizedK returns the longest row of activations that each compute path quantizes.
func (w *Weights) QuantizedK() (k tp.QuantizedK) {
	for r := range w.ranks {
		for i := range w.ranks[r].Packed {
			p := &w.ranks[r].Packed[i]
			k.Add(p.Compute, p.Layout.K)
		}
	}
	return k
}

func layoutOf(w *model.Weight) (microkernel.Layout, error) {
	t, err := microkernel.ParseWeightType(w.Tensor.Type.String())
	if err != nil {
		return microkernel.Layout{}, fmt.Errorf("tensor %s: %w", w.Tensor.Name, err)
	}
	l := microkernel.Layout{Type: t, N: w.N, K: w.K}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("tensor %s: %w", w.Tensor.Name, err)
	}
	return l, nil
}

// PackedBytes returns the memory that Load allocates for all ranks. Weights of a type without a
// layout count as nothing.
func PackedBytes(p *tp.Shards) (total int64) {
	for r := range p.List {
		total += ShardBytes(&p.List[r])
	}
	return total
}

// ShardBytes returns the memory that Load allocates for a rank.
func ShardBytes(p *tp.Shard) (total int64) {
	for i := range p.Model.Weights {
		if l, err := layoutOf(&p.Model.Weights[i]); err == nil && p.Holds(i) {
			total += int64(l.Bytes()) * int64(p.Model.Weights[i].Matrices())
		}
	}
	return total + int64(shardTables(p))
}

// shardTables returns the size of the tables that a rank holds: the first one holds all.
func shardTables(p *tp.Shard) int {
	if !p.First {
		return 0
	}
	return tableBytes(p.Model)
}

// Options of Load. The zero value uses private memory and one group of workers.
type Options struct {
	Groups   *pool.Grouping // divide the workers among the ranks; nil: there is one
	Progress func(done, total int64)
	Digest   *Digest       // hashes the tensors meanwhile; nil: not
	Memory   mem.Allocator // of the weights
	// Turns gives the cores to other users between parts of the load; nil: there are none.
	Turns background.Turns
}

// Load packs every matrix of the model, each rank's part by its own workers, and copies the
// embeddings unless the head is the same matrix. Forwards do not read the file. The pages of a raw
// tensor are released as soon as it is packed, so that weights are in memory once.
//
// A weight with a value that is not finite is an error that names it, and a file that another
// process changes meanwhile is gguf.ErrChanged. When ctx ends, each worker finishes its chunk, and
// the error is the cause of ctx. Progress, which may be nil, gets the number of finished bytes and
// may be called by several threads at once.
func Load(ctx context.Context, shards *tp.Shards, plan *plans.Plan, workers *pool.Pool, o Options) (*Weights,
	error) {
	w := &Weights{ranks: make([]rankWeights, len(shards.List))}
	for r := range w.ranks {
		if err := w.ranks[r].allocate(&shards.List[r], plan, o.Memory); err != nil {
			return nil, errors.Join(err, w.Free())
		}
	}
	l := loading{ctx: ctx, shards: shards, weights: w, groups: o.Groups, total: PackedBytes(shards),
		progress: o.Progress, digest: o.Digest, turns: o.Turns}
	if err := l.run(workers); err != nil {
		for r := range w.ranks {
			mem.Discard(background.In(o.Turns), w.ranks[r].memory)
		}
		return nil, errors.Join(err, w.Free())
	}
	w.findTables(shards)
	return w, nil
}

// allocate lays out the weights of a rank in memory of its node.
func (w *rankWeights) allocate(shard *tp.Shard, plan *plans.Plan, from mem.Allocator) error {
	m := shard.Model
	for i := range m.Weights {
		if !shard.Holds(i) {
			w.First = append(w.First, -1)
			continue
		}
		l, err := layoutOf(&m.Weights[i])
		if err != nil {
			return err
		}
		c, err := PathOf(plan, &m.Weights[i])
		if err != nil {
			return err
		}
		w.First = append(w.First, len(w.Packed))
		for range m.Weights[i].Matrices() {
			w.Packed = append(w.Packed, gemm.Packed{Layout: l, Compute: c})
		}
	}
	memory, err := from.Alloc(int(ShardBytes(shard)), mem.Options{Node: shard.Node, Huge: true})
	if err != nil {
		return fmt.Errorf("packing the weights: %w", err)
	}
	w.memory = memory
	at := memory.Pointer()
	for i := range w.Packed {
		w.Packed[i].Data = at
		at = unsafe.Add(at, w.Packed[i].Layout.Bytes())
	}
	if shardTables(shard) > 0 {
		w.table = at
	}
	return nil
}

// PathOf returns the compute path that a plan gives a matrix. It belongs to the whole matrix,
// whatever part of it a rank holds (DESIGN rule 6).
func PathOf(plan *plans.Plan, weight *model.Weight) (microkernel.Compute, error) {
	t := weight.Tensor
	key := plans.WeightKey{N: weight.Of[0], K: weight.Of[1], Type: t.Type.String()}
	if w, ok := plan.Weight(key); ok {
		return w.Compute, nil
	}
	return 0, fmt.Errorf("the plan does not have weight %s (%s); use a plan for this model", key, t.Name)
}
