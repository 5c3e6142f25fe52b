package exec

import "sandwich/runtime/mem"

// Memory is the buffer of a rank's weights.
func (w *Weights) Memory(rank int) *mem.Buffer { return w.ranks[rank].memory }

// Memory is the buffer of a rank's caches.
func (l KVStores) Memory(rank int) *mem.Buffer { return l[rank].memory }

// Memory is the buffer of a rank's activations.
func (b *Buffers) Memory(rank int) *mem.Buffer { return b.ranks[rank].memory }
