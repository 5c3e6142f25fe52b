package exec

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
)

// ArithmeticVersion counts the changes of the code that change the bits of keys, values and states.
// It must be raised when TestArithmeticVersion of runtime/engine fails, so that stored blocks of
// earlier builds are not used.
const ArithmeticVersion = 1

// Identity returns a hash of everything but salt and tokens that the content of the KV blocks
// depends on: the model, its arithmetic, and the layout of the blocks. It does not depend on the
// machine, unless the plan's rounding does (plans.Plan.Exact): then it depends on host, the
// fingerprint of the machine. Options.Digest must have been set.
func (a *Assembly) Identity(host string) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "arithmetic %d\nmodel %x\nkv %s attention %s\n", ArithmeticVersion, a.digest, a.Plan.KV,
		a.Plan.Attention)
	for i := range a.Model.Weights {
		w := &a.Model.Weights[i]
		compute, err := load.PathOf(a.Plan, w)
		if err != nil {
			panic(err) // Open has packed the weight under this plan
		}
		fmt.Fprintf(h, "weight %q %s %s\n", w.Name, compute, plans.ChainOf(compute))
	}
	for _, r := range a.Model.Ropes() {
		fmt.Fprintf(h, "rope %x %v %x\n", r.Frequencies(a.context), r.Neox, r.Gain)
	}
	for i := range a.Shards.List {
		fmt.Fprintf(h, "rank %d of %d: %v\n", i, len(a.Shards.List), a.Shards.List[i].Layers.Heads)
	}
	if !a.Plan.Exact() {
		fmt.Fprintf(h, "host %q\n", host)
	}
	h.Sum(sum[:0])
	return sum
}

// contentDigest returns the hash of the tensors of a file and of the metadata that describes the
// model. The vocabulary and descriptive texts do not count: blocks depend on token ids.
func contentDigest(f *gguf.File, d *load.Digest) (sum [sha256.Size]byte) {
	h := sha256.New()
	tensors := d.Sum()
	h.Write(tensors[:])
	keys := f.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		text := strings.HasPrefix(key, "tokenizer.") || strings.HasPrefix(key, "general.")
		if !text || key == "general.architecture" {
			fmt.Fprintf(h, "%q %x\n", key, f.Encoded(key))
		}
	}
	h.Sum(sum[:0])
	return sum
}

// BlockParts returns the memory of a block of a store, in all layers and ranks.
func (a *Assembly) BlockParts(store int, id kvcache.BlockID) (parts [][]byte) {
	if a.States != nil && store == a.States.Store() {
		return append(parts, a.States.Block(id))
	}
	for r := range a.KV {
		l := &a.Shards.List[r].Layers
		for layer, of := range l.Of {
			if of == store && l.Keeps(layer) {
				parts = append(parts, a.KV[r].Block(layer, id))
			}
		}
	}
	return parts
}
