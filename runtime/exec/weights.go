package exec

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Packed is one weight in the layout its kernels read, and the arithmetic that belongs to it.
type Packed struct {
	Layout  microkernel.Layout
	Compute microkernel.Compute
	Data    unsafe.Pointer
}

// roundsInput says that products read activations in a form of the compute path's own.
func (p *Packed) roundsInput() bool { return p.Compute != microkernel.ComputeF32 }

// Weights are all matrices of a model, packed once, shared by every phase (DESIGN rule 5): each
// rank's pieces in memory of its own.
type Weights struct {
	ranks  []rankWeights
	embed  embedding
	inputs embedding // of the layers' own inputs; without a table where there are none
}

// rankWeights are the pieces of one rank.
type rankWeights struct {
	packed []Packed // the matrices of a stack follow each other
	first  []int    // by Model.Weights: its first matrix in packed, -1 where the rank holds nothing of it
	// the tables as the file has them, behind the packed matrices of the first rank; nil elsewhere
	table  unsafe.Pointer
	memory *mem.Buffer
}

// At returns the packed form of Model.Weights[i], the first matrix of a stack.
func (w *rankWeights) At(i int) *Packed { return &w.packed[w.first[i]] }

// InStack returns matrix j of the stack Model.Weights[i].
func (w *rankWeights) InStack(i, j int) *Packed { return &w.packed[w.first[i]+j] }

// At returns what a rank holds of Model.Weights[i], the first matrix of a stack; nil where it holds
// nothing of it.
func (w *Weights) At(rank, i int) *Packed {
	if w.ranks[rank].first[i] < 0 {
		return nil
	}
	return w.ranks[rank].At(i)
}

// Ranks is the number of ranks that hold the weights.
func (w *Weights) Ranks() int { return len(w.ranks) }

// Bytes is the size of all packed weights and of the embedding.
func (w *Weights) Bytes() (total int64) {
	for r := range w.ranks {
		total += int64(w.ranks[r].memory.Len())
	}
	return total
}

// Residency looks up on which NUMA nodes the packed weights of a rank are.
func (w *Weights) Residency(rank int) (mem.Residency, error) {
	return w.ranks[rank].memory.Residency()
}

// Free returns the memory; nothing may read the weights then or afterwards.
func (w *Weights) Free() (err error) {
	for r := range w.ranks {
		if m := w.ranks[r].memory; m != nil {
			err = errors.Join(err, m.Free())
		}
	}
	return err
}

// roundedK is the longest row of activations that a compute path rounds for itself, by Compute; 0
// where no weight has that path.
func (w *Weights) roundedK() (k roundedK) {
	for r := range w.ranks {
		for i := range w.ranks[r].packed {
			p := &w.ranks[r].packed[i]
			k.count(p.Compute, p.Layout.K)
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

// loadWeights packs every matrix of the model, each rank's pieces by the rank's own workers, and
// copies the embedding where the head is another matrix: forwards read nothing of the file. The
// pages of a raw tensor are given back as soon as it is packed, so that weights are in memory once.
// A weight with a value that is not finite is refused by name, and so is a file that another
// program writes to meanwhile (gguf.ErrChanged). When ctx ends, each worker finishes the piece it
// is at, and the error is ctx's cause. progress, where given, hears of finished bytes and may be
// called from several threads.
func loadWeights(ctx context.Context, shards *Shards, plan *plans.Plan, on *Workers,
	progress func(done, total int64)) (*Weights, error) {
	w := &Weights{ranks: make([]rankWeights, len(shards.list))}
	for r := range w.ranks {
		if err := w.ranks[r].allocate(&shards.list[r], plan); err != nil {
			return nil, errors.Join(err, w.Free())
		}
	}
	l := loading{ctx: ctx, shards: shards, weights: w, groups: on.Grouping(), total: shards.PackedBytes(),
		progress: progress}
	if err := l.run(on.Pool); err != nil {
		return nil, errors.Join(err, w.Free())
	}
	w.findEmbedding(shards)
	return w, nil
}

// allocate lays out the pieces of a rank in memory of its node.
func (w *rankWeights) allocate(shard *shard, plan *plans.Plan) error {
	m := shard.model
	for i := range m.Weights {
		if !shard.holds(i) {
			w.first = append(w.first, -1)
			continue
		}
		l, err := layoutOf(&m.Weights[i])
		if err != nil {
			return err
		}
		c, err := computeOf(plan, &m.Weights[i])
		if err != nil {
			return err
		}
		w.first = append(w.first, len(w.packed))
		for range m.Weights[i].Matrices() {
			w.packed = append(w.packed, Packed{Layout: l, Compute: c})
		}
	}
	memory, err := mem.Alloc(int(shard.packedBytes()), mem.Options{Node: shard.node, Huge: true})
	if err != nil {
		return fmt.Errorf("packing the weights: %w", err)
	}
	w.memory = memory
	at := memory.Pointer()
	for i := range w.packed {
		w.packed[i].Data = at
		at = unsafe.Add(at, w.packed[i].Layout.Bytes())
	}
	if shard.tableBytes() > 0 {
		w.table = at
	}
	return nil
}

// computeOf looks up which arithmetic the plan gives a matrix: that of the whole, whatever a rank
// holds of it (rule 6).
func computeOf(plan *plans.Plan, weight *model.Weight) (microkernel.Compute, error) {
	t := weight.Tensor
	key := plans.WeightKey{N: weight.Of[0], K: weight.Of[1], Type: t.Type.String()}
	if w, ok := plan.Weight(key); ok {
		return w.Compute, nil
	}
	return 0, fmt.Errorf("the plan says nothing of weight %s (%s): it was made for another model", key, t.Name)
}
