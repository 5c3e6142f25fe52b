package measure

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/mem"
	"sandwich/topotree"
)

// leavesCache times the last-level cache is what a round must be for nothing of the last one to be
// left there.
const (
	leavesCache = 4
	leastCache  = 64 << 20 // where the machine does not tell
)

// RoundBytes is how many bytes calls go round on some PUs so that what they read comes from memory.
func RoundBytes(host *profiles.Profile, pus []int) int64 {
	return leavesCache * max(LastLevel(host, pus), leastCache)
}

// ColdBytes is RoundBytes within a quarter of the memory that is free.
func ColdBytes(host *profiles.Profile, pus []int) int64 {
	n := RoundBytes(host, pus)
	if free := mem.Available(); free > 0 {
		n = min(n, free/4)
	}
	return n
}

// LastLevel is the size of all last-level caches that some PUs share, 0 when the machine does not
// tell.
func LastLevel(host *profiles.Profile, pus []int) int64 {
	usable := topotree.NewCPUSet(pus...)
	for _, kind := range []topotree.Kind{topotree.KindL4, topotree.KindL3, topotree.KindL2} {
		var sum int64
		for _, o := range host.Machine.Objects {
			if o.Kind == kind && o.CPUs.Intersects(usable) {
				sum += o.Bytes
			}
		}
		if sum > 0 {
			return sum
		}
	}
	return 0
}

// PackedBytes is the size of a weight as it is packed; 0 for types without kernels.
func PackedBytes(k plans.WeightKey) int {
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return 0
	}
	return microkernel.Layout{Type: t, N: k.N, K: k.K}.Bytes()
}
