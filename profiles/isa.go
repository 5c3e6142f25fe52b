package profiles

import (
	"io"
	"maps"
	"slices"
	"strings"

	"sandwich/microkernel"
)

// liveISA lists what this processor can do and this operating system lets it do, sorted: the
// features that kernels are gated on, and the matrix extensions that are only reported.
func liveISA() []string {
	set := map[string]bool{}
	for name := range strings.SplitSeq(microkernel.Host().String(), ",") {
		if name != "" {
			set[name] = true
		}
	}
	for _, name := range matrixExtensions() {
		if _, err := microkernel.ParseFeatures(name); err != nil { // else Host has asked the system as well
			set[name] = true
		}
	}
	return sortedKeys(set)
}

// features translates names to the set that kernels are gated on. Names it does not know (amx_tile,
// sme) gate nothing and are passed over.
func features(names []string) microkernel.Features {
	var f microkernel.Features
	for _, n := range names {
		if one, err := microkernel.ParseFeatures(n); err == nil {
			f |= one
		}
	}
	return f
}

// sortedKeys lists the keys of a set.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// readAtMost reads up to limit bytes and drops the rest.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
