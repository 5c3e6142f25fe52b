package exec

import (
	"math/rand/v2"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
)

// Memory is the whole cache, for benchmarks that read it as fast as they can.
func (s *KVStore) Memory() []byte { return unsafe.Slice((*byte)(s.memory.Pointer()), s.memory.Len()) }

// FillRandom gives every block of every layer the same 64 random positions, so that a benchmark may
// attend to a context that no forward wrote. Values lie between -1 and 1.
func (s *KVStore) FillRandom(v *microkernel.Vec, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, 2*kvcache.BlockTokens*s.layout.HeadDim)
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
	k, value := s.at(0, 0, 0)
	v.StoreK(s.layout, k, 0, &x[0], kvcache.BlockTokens, s.layout.HeadDim)
	v.StoreV(s.layout, value, 0, &x[len(x)/2], kvcache.BlockTokens, s.layout.HeadDim)
	all := s.Memory()
	for at := s.pair; at+s.pair <= len(all); at += s.pair {
		copy(all[at:at+s.pair], all[:s.pair])
	}
}
