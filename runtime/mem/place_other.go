//go:build !linux || race

package mem

import "runtime"

const hugeSize = 2 << 20

// place binds no memory, because this build has no NUMA calls. It returns Buffer.Note.
func place(_ []byte, o Options) (note string, err error) {
	if o.Node > 0 {
		return "memory is not bound to nodes on " + runtime.GOOS + " or under the race detector", nil
	}
	return "", nil
}

func populate([]byte) bool { return false }
