package plans

import "fmt"

// check validates the dimensions and the type of a weight.
func (k WeightKey) check() error {
	if k.N < 1 || k.N > maxDim || k.K < 1 || k.K > maxDim {
		return fmt.Errorf("shape %dx%d is not within 1..%d", k.N, k.K, maxDim)
	}
	if k.Type == "" || len(k.Type) > 16 {
		return fmt.Errorf("type %.40q is not a tensor type", k.Type)
	}
	return nil
}

// Version is the schema version of the bundles that this build writes, and of each of their files.
// Older versions are read and migrated (migrate.go).
const Version = 3
