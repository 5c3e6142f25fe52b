package mem

// Residency is where the pages of some memory are.
type Residency struct {
	Pages  map[int]int // pages by NUMA node, of PageSize bytes each
	Absent int         // pages not faulted in (or swapped out)
	Known  bool        // false where the system cannot tell; then the rest is empty
}

// PageSize is the size in bytes of the pages that Residency counts.
func PageSize() int { return pageSize }

// Remote is the fraction of present pages that are not on the node; 0 when none is present.
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

// Residency looks up where each page of the buffer is.
func (b *Buffer) Residency() (Residency, error) { return residencyOf(b.data) }
