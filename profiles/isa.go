package profiles

import (
	"io"
	"maps"
	"slices"
	"strings"

	"sandwich/microkernel"
)

// liveISA returns the sorted features of this processor that the operating system enables: those
// that kernels need, and matrix extensions that are only reported.
func liveISA() []string {
	set := map[string]bool{}
	for name := range strings.SplitSeq(microkernel.Host().String(), ",") {
		if name != "" {
			set[name] = true
		}
	}
	for _, name := range matrixExtensions() {
		if _, err := microkernel.ParseFeatures(name); err != nil { // known features were checked by Host
			set[name] = true
		}
	}
	return sortedKeys(set)
}

// features converts names to the feature set that kernels need. It ignores unknown names such as
// amx_tile and sme.
func features(names []string) microkernel.Features {
	var f microkernel.Features
	for _, n := range names {
		if one, err := microkernel.ParseFeatures(n); err == nil {
			f |= one
		}
	}
	return f
}

// sortedKeys returns the sorted keys of a set.
func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// readAtMost reads up to limit bytes and ignores the rest.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
