package attention

import (
	"math/rand/v2"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
)

// Memory returns the entire cache, for benchmarks that measure the bandwidth of reading it.
func (s *KVStore) Memory() []byte { return unsafe.Slice((*byte)(s.memory.Pointer()), s.memory.Len()) }

// FillRandom gives every block of every layer the same 64 random positions, so that a benchmark may
// attend to a context that no forward wrote. Values lie between -1 and 1. tp.Layers are all alike.
func (s *KVStore) FillRandom(v *microkernel.Vec, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	l := s.of[0]
	x := make([]float32, 2*kvcache.BlockTokens*l.layout.HeadDim)
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
	k, value := s.at(0, 0, 0)
	v.StoreK(l.layout, k, 0, &x[0], kvcache.BlockTokens, l.layout.HeadDim)
	v.StoreV(l.layout, value, 0, &x[len(x)/2], kvcache.BlockTokens, l.layout.HeadDim)
	all := s.Memory()
	for at := l.pair; at+l.pair <= len(all); at += l.pair {
		copy(all[at:at+l.pair], all[:l.pair])
	}
}
