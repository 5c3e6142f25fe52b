package forward

import (
	"fmt"

	"sandwich/runtime/mem"
)

// Placement describes where one kind of a rank's memory is.
type Placement struct {
	Rank      int
	What      string // weights, kv or activations
	Node      int    // NUMA node that the memory is bound to; mem.AnyNode if it is not bound
	Bytes     int64
	On        map[int]int64 // bytes by node, from a sample of pages; nil if the system cannot report it
	Remote    float64       // fraction on other nodes than Node
	Moved     int64         // bytes that are at another address or node than at the start; 0 in normal operation
	Misplaced bool          // Node had no room for a part of the memory when it was allocated
}

// placed is a buffer with its placement at the start.
type placed struct {
	rank   int
	what   string
	buffer *mem.Buffer
	start  mem.Survey
}

const (
	placePages     = 64   // pages sampled in each buffer
	misplacedLimit = 0.01 // fraction of remote pages from which a buffer counts as misplaced
)

// notePlaces records the placement of all buffers. All their pages must have been touched.
func (r *Runner) notePlaces() error {
	for rank := range r.assembly.Shards.Ranks() {
		for _, p := range []placed{
			{rank: rank, what: "weights", buffer: r.assembly.Weights.Memory(rank)},
			{rank: rank, what: "kv", buffer: r.assembly.KV.Memory(rank)},
			{rank: rank, what: "activations", buffer: r.sets[0].Load().Memory(rank)},
		} {
			var err error
			if p.start, err = mem.SurveyOf(placePages, p.buffer); err != nil {
				return fmt.Errorf("the %s of rank %d: %w", p.what, rank, err)
			}
			r.placed = append(r.placed, p)
		}
	}
	return nil
}

// Placement returns where the memory of each rank is now, and how much of it moved since the start,
// from a sample of pages of each buffer.
func (r *Runner) Placement() ([]Placement, error) {
	out := make([]Placement, 0, len(r.placed))
	for _, p := range r.placed {
		now, err := mem.SurveyOf(placePages, p.buffer)
		if err != nil {
			return nil, fmt.Errorf("the %s of rank %d: %w", p.what, p.rank, err)
		}
		out = append(out, Placement{Rank: p.rank, What: p.what, Node: p.buffer.Node(), Bytes: now.Bytes(), On: now.On(),
			Remote: now.Remote(), Moved: now.Moved(p.start), Misplaced: p.start.Remote() >= misplacedLimit})
	}
	return out, nil
}

// Huge returns how many bytes of weights, KV cache and activations are on transparent huge pages,
// -1 if the system cannot report it. It takes some milliseconds per gigabyte.
func (r *Runner) Huge() (int64, error) {
	var all []*mem.Buffer
	for _, p := range r.placed {
		all = append(all, p.buffer)
	}
	return mem.HugeBytes(all...)
}

// MisplacedNotes returns one sentence for each memory that is not on the requested node.
func MisplacedNotes(places []Placement) (notes []string) {
	for _, p := range places {
		if p.Misplaced {
			notes = append(notes, fmt.Sprintf("%.0f %% of the %s of rank %d (%s) are not on node %d, which had "+
				"no room: free memory there or lower --ctx; until then this rank waits for another node's memory",
				100*p.Remote, p.What, p.Rank, mem.FormatBytes(p.Bytes), p.Node))
		}
	}
	return notes
}
