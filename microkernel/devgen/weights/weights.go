// Package weights states which weights the device kernels of package kernels can multiply.
package weights

import (
	"fmt"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Supports returns why no device kernel multiplies weights of a type by a compute path, or nil.
func Supports(t qtype.Type, path kernel.Compute) error {
	if !t.Known() {
		return fmt.Errorf("weight type %s is unknown", t)
	}
	if !readable(t, path) {
		return fmt.Errorf("there is no device kernel of path %s for weights of type %s", path, t)
	}
	return nil
}

// readable reports whether kernels of a path read panels of a type. Bits that panels do not store
// as they are used have no device kernel.
func readable(t qtype.Type, path kernel.Compute) bool {
	d := t.Desc()
	if d.Float != qtype.None {
		return path == kernel.ComputeF32
	}
	if d.Made() || d.ScaleRaw.Get != nil {
		return false
	}
	plain := d.Codebook == nil && d.Raw == nil && d.Unit == 0 &&
		(d.Subs == qtype.NoSubs || d.Subs == qtype.PairSubs || d.Subs == qtype.SignedSubs)
	switch path {
	case kernel.ComputeF32:
		return plain
	case kernel.ComputeInt8, kernel.ComputeInt8Superblock:
		return plain && (!d.Affine() || d.Span() == qtype.SubBlockK)
	case kernel.ComputeInt8K:
		return path.Takes(t)
	}
	return false
}
