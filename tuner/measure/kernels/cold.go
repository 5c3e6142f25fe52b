package kernels

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// leavesCache is the size of a round relative to the last-level cache that evicts all of the
// previous round.
const (
	leavesCache = 4
	minCache    = 64 << 20 // if the size is unknown
)

// RoundBytes returns the number of bytes through which calls on some PUs cycle so that they read
// from memory.
func RoundBytes(host *profiles.Profile, pus topotree.CPUSet) int64 {
	return leavesCache * max(LastLevel(host, pus), minCache)
}

// ColdBytes returns RoundBytes, limited to a quarter of the free memory.
func ColdBytes(host *profiles.Profile, pus topotree.CPUSet) int64 {
	n := RoundBytes(host, pus)
	if free := mem.Available(); free > 0 {
		n = min(n, free/4)
	}
	return n
}

// LastLevel returns the size of all last-level caches of some PUs, or 0 if it is unknown.
func LastLevel(host *profiles.Profile, pus topotree.CPUSet) int64 {
	for _, kind := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		var sum int64
		for _, o := range host.Machine.Objects {
			if o.Kind == kind && o.CPUs.Intersects(pus) {
				sum += o.Bytes
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// PackedBytes returns the size of a packed weight in bytes, or 0 for types without kernels.
func PackedBytes(k plans.WeightKey) int {
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return 0
	}
	return microkernel.Layout{Type: t, N: k.N, K: k.K}.Bytes()
}
