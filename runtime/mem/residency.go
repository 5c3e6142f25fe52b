package mem

// Residency counts the pages of some memory by NUMA node.
type Residency struct {
	Pages  map[int]int // pages by NUMA node, of PageSize bytes each
	Absent int         // pages not faulted in (or swapped out)
	Known  bool        // false if the system does not report nodes; the other fields are then empty
}

// PageSize returns the size in bytes of the pages that Residency counts.
func PageSize() int { return pageSize }

// Remote returns the fraction of present pages that are not on the node, or 0 if none is present.
func (r Residency) Remote(node int) float64 {
	all := 0
	for _, n := range r.Pages {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 1 - float64(r.Pages[node])/float64(all)
}

// Residency returns the NUMA nodes of the buffer's pages.
func (b *Buffer) Residency() (Residency, error) { return residencyOf(b.data) }
