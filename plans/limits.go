package plans

import "fmt"

// KV cache types.
const (
	KVF16 = "f16"
	KVF32 = "f32"
	KVQ8  = "q8_0"
)

// check refuses shapes that no weight has.
func (k WeightKey) check() error {
	if k.N < 1 || k.N > maxDim || k.K < 1 || k.K > maxDim {
		return fmt.Errorf("shape %dx%d is not within 1..%d", k.N, k.K, maxDim)
	}
	if k.Type == "" || len(k.Type) > 16 {
		return fmt.Errorf("type %.40q is no tensor type", k.Type)
	}
	return nil
}

// bundleVersion is the schema version of a bundle and of each of its files. Readers refuse others by name.
const bundleVersion = 1
