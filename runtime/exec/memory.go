package exec

import (
	"sandwich/runtime/mem"
	"sandwich/runtime/pool"
)

// Memory is the buffer of a rank's weights.
func (w *Weights) Memory(rank int) *mem.Buffer { return w.ranks[rank].memory }

// Memory is the buffer of a rank's caches.
func (l KVStores) Memory(rank int) *mem.Buffer { return l[rank].memory }

// Memory is the buffer of a rank's activations.
func (b *Buffers) Memory(rank int) *mem.Buffer { return b.ranks[rank].memory }

// Touch faults in a buffer of each rank, by the rank's own workers, so that no request waits for that and that the pages of
// buffers without a node come to lie near who uses them. groups is that of Parts.Groups. Not to be called during a run.
func Touch(p *pool.Pool, groups *Groups, memory func(rank int) *mem.Buffer) {
	const piece = 2 << 20 // a huge page
	p.Run(func(w *pool.Worker) {
		rank, id, n := 0, w.ID(), w.N()
		if groups != nil {
			w.Use(groups.grouping)
			rank, id, n = w.Group().ID(), w.GroupRank(), w.Group().Size()
		}
		b := memory(rank)
		b.Touch(pool.Split(b.Len(), n, id, piece))
	})
}
