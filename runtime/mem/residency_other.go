//go:build !linux

package mem

// residencyOf cannot tell on this system.
func residencyOf([]byte) (Residency, error) { return Residency{}, nil }

func nodesOf(pages []uintptr) (nodes []int32, known bool, err error) {
	nodes = make([]int32, len(pages))
	for i := range nodes {
		nodes[i] = -1
	}
	return nodes, false, nil
}
