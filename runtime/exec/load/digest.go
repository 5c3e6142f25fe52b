package load

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"sandwich/runtime/gguf"
)

// digestChunk is the number of bytes of a tensor that a worker hashes at a time.
const digestChunk = 1 << 20

// Digest hashes the tensors of a file while they are packed. Load calls it from all workers.
type Digest struct {
	tensors []*gguf.Tensor
	index   map[*gguf.Tensor]int
	taken   []atomic.Int64 // by tensor: chunks handed out
	sums    [][][sha256.Size]byte
}

// NewDigest returns a digest of all tensors of a file.
func NewDigest(f *gguf.File) *Digest {
	d := &Digest{tensors: f.Tensors(), index: map[*gguf.Tensor]int{}}
	slices.SortFunc(d.tensors, func(a, b *gguf.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	d.taken, d.sums = make([]atomic.Int64, len(d.tensors)), make([][][sha256.Size]byte, len(d.tensors))
	for i, t := range d.tensors {
		d.index[t] = i
		d.sums[i] = make([][sha256.Size]byte, (len(t.Data)+digestChunk-1)/digestChunk)
	}
	return d
}

// Sum returns the hash of the names, types, shapes and contents of all tensors. Load must have
// returned without an error.
func (d *Digest) Sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	for i, t := range d.tensors {
		fmt.Fprintf(h, "%q %s %v\n", t.Name, t.Type, t.Dims)
		_ = binary.Write(h, binary.LittleEndian, uint64(len(t.Data))) // a hash does not fail
		for j := range d.sums[i] {
			h.Write(d.sums[i][j][:])
		}
	}
	h.Sum(sum[:0])
	return sum
}

// digestRest hashes the tensors that are no weights, which no worker packs.
func (l *loading) digestRest() bool {
	if l.digest == nil {
		return true
	}
	packed := map[*gguf.Tensor]bool{}
	for i := range l.shards.Whole.Weights {
		packed[l.shards.Whole.Weights[i].Tensor] = true
	}
	for _, t := range l.digest.tensors {
		if !packed[t] && !l.digestTensor(t) {
			return false
		}
	}
	return true
}

// digestTensor hashes chunks of a tensor until all are handed out, and reports whether to continue.
func (l *loading) digestTensor(t *gguf.Tensor) bool {
	d := l.digest
	if d == nil {
		return true
	}
	i, ok := d.index[t]
	if !ok {
		return true
	}
	for {
		j := int(d.taken[i].Add(1)) - 1
		if j >= len(d.sums[i]) {
			return true
		}
		data := t.Data[j*digestChunk : min(len(t.Data), (j+1)*digestChunk)]
		if !l.read(t, func() bool {
			d.sums[i][j] = sha256.Sum256(data)
			return true
		}) || l.yields() {
			return false
		}
	}
}
