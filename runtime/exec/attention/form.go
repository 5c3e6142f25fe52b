package attention

import (
	"sync/atomic"

	"sandwich/microkernel"
)

// maxStateBytes bounds the memory for states of split segments.
const maxStateBytes = 256 << 20

// form is the attention of a batch in layers of one store that have equal heads.
type form struct {
	divider
	layout microkernel.KVLayout
	before int // query heads of the first KV head that another rank has
	heads  int // query heads in all
	view   view
	fused  []*microkernel.Attention // by worker kind
	ranged []*microkernel.Attention // by worker kind, for chunks of split segments: all kinds can read their states
	left   []atomic.Int32           // unfinished chunks, by split and KV head
}

// newForm returns the form of a layer's attention.
func newForm(kv *KVStore, shape *Shape, layer, team int) form {
	store, l := kv.layers.Of[layer], &kv.of[layer]
	f := form{divider: divider{team: team, kvHeads: l.kvHeads, group: shape.group(layer)}, layout: l.layout,
		view: newView(kv.layers.Kinds[store], store)}
	f.heads = f.group * f.kvHeads
	if shape.Windows != nil {
		f.window = shape.Windows[store]
	}
	return f
}

// equal reports whether layers of two forms can share one.
func (f *form) equal(o *form) bool {
	return f.view.store == o.view.store && f.layout == o.layout && f.kvHeads == o.kvHeads && f.group == o.group
}

// prepare builds the kernels and returns the memory for states of split segments.
func (f *form) prepare(isas []microkernel.ISA, kv *KVStore, of microkernel.AttentionForm) (bytes int, err error) {
	for _, isa := range isas {
		fused, err := microkernel.NewAttention(isa, f.layout, of)
		if err != nil {
			return 0, err
		}
		ranged := fused
		if len(f.fused) > 0 && !fused.SharesStates(f.fused[0], f.group) {
			ranged = f.fused[0]
		}
		f.fused, f.ranged = append(f.fused, fused), append(f.ranged, ranged)
	}
	if f.team == 1 {
		return 0, nil
	}
	f.state = f.fused[0].StateBytes(f.group)
	f.max = min(kv.longest, maxStateBytes/(f.state*f.kvHeads))
	f.left = make([]atomic.Int32, f.maxSplits()*f.kvHeads)
	return f.max * f.kvHeads * f.state, nil
}

// queries returns the query heads of a KV head: the first one and their number.
func (f *form) queries(kvHead int) (first, n int) {
	first = max(0, kvHead*f.group-f.before)
	return first, min(f.heads, (kvHead+1)*f.group-f.before) - first
}

// reserve gives the lists of a small batch adjacent memory: after a prefill none of it is cached,
// and each separate place would cost a cache miss.
func (f *form) reserve() {
	m := new(struct {
		spans    [2]viewSpan
		segments [2]segment
		chunks   [4]chunk
	})
	f.view.spans, f.segments, f.chunks = m.spans[:0], m.segments[:0], m.chunks[:0]
}
