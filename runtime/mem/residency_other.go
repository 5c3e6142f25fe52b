//go:build !linux

package mem

// residencyOf returns an unknown residency: this system does not report nodes.
func residencyOf([]byte) (Residency, error) { return Residency{}, nil }

func nodesOf(pages []uintptr) (nodes []int32, known bool, err error) {
	nodes = make([]int32, len(pages))
	for i := range nodes {
		nodes[i] = -1
	}
	return nodes, false, nil
}
