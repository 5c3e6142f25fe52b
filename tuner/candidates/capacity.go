package candidates

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/topotree"
)

// capacity computes the memory that configurations need and compares it with what the nodes have.
type capacity struct {
	machine *topotree.Machine
	shape   plans.ModelShape
	weights map[string]int64 // bytes of all matrices by role
	cache   int64            // bytes of keys and values of all heads
	rows    int64            // bytes of activations of one rank
	limits  map[int]int64    // by node; nodes of unknown size are absent
}

// bufferRows is the number of rows of activations that a rank holds: two sets of a prefill chunk,
// because exec keeps one for a halted forward.
const bufferRows = 2 * 512

func newCapacity(p *profiles.Profile, shape plans.ModelShape, o Options) *capacity {
	r := &capacity{machine: p.Machine, shape: shape, weights: map[string]int64{}, limits: map[int]int64{}}
	for _, w := range shape.Weights {
		if w.Role != plans.RoleEmbed { // its rows are read from the file
			values := float64(w.N) * float64(w.K) * float64(w.Count)
			r.weights[w.Role] += int64(values * roofline.Bits(w.Type) / 8)
		}
	}
	if r.cache = o.Cache; r.cache == 0 {
		r.cache = int64(min(4096, max(1, shape.Context))) * shape.KVBytesPerToken(microkernel.KVF16)
	}
	width := 3*shape.Hidden + 2*(shape.Heads+shape.KVHeads)*shape.HeadDim + shape.FFN
	r.rows = int64(bufferRows) * int64(width) * 4
	for _, n := range p.Machine.Memory {
		if n.Bytes > 0 {
			r.limits[n.ID] = n.Bytes
		}
	}
	return r
}

// bytes returns the bytes of a configuration on each memory node: weights, keys and values, and
// activations of its ranks, divided evenly over the nodes of a rank.
func (r *capacity) bytes(c *Config) (map[int]int64, error) {
	shares, err := r.shape.Cut(c.weights())
	if err != nil {
		return nil, err
	}
	out := map[int]int64{}
	for i, rank := range c.Ranks {
		need := r.share(shares[i])
		for _, node := range rank.Nodes {
			out[node] += need / int64(len(rank.Nodes))
		}
	}
	return out, nil
}

// share returns the memory of one rank in bytes.
func (r *capacity) share(s plans.Share) int64 {
	heads := float64(s.Heads.Len()) / float64(r.shape.Heads)
	kv := float64(s.KVHeads.Len()) / float64(r.shape.KVHeads)
	total := float64(r.cache)*kv + float64(r.rows)
	for role, bytes := range r.weights {
		part := 1.0
		switch role {
		case "q", "o":
			part = heads
		case "k", "v":
			part = kv
		case "gate", "up", "down":
			part = float64(s.FFN.Len()) / float64(max(1, r.ffn()))
		case "head":
			part = float64(s.Vocab.Len()) / float64(r.shape.Vocab)
		}
		total += float64(bytes) * part
	}
	return int64(total)
}

func (r *capacity) ffn() int {
	if r.shape.Experts > 0 {
		return r.shape.ExpertFFN
	}
	return r.shape.FFN
}

// fits returns an error if a node has too little memory for a configuration.
func (r *capacity) fits(c *Config) error {
	need, err := r.bytes(c)
	if err != nil {
		return fmt.Errorf("the model cannot be divided among their ranks")
	}
	for node, bytes := range need {
		if limit, known := r.limits[node]; known && bytes > limit {
			return fmt.Errorf("a memory node is too small for its share of the weights and the cache")
		}
	}
	return nil
}

// coreOf returns all PUs of a PU's core.
func (r *capacity) coreOf(pu int) topotree.CPUSet {
	for _, o := range r.machine.Objects {
		if o.Kind == topotree.KindCore && o.CPUs.Contains(pu) {
			return o.CPUs
		}
	}
	return topotree.NewCPUSet(pu)
}
