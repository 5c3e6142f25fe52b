package kvcache

// Spec is the configuration of one store of a cache.
type Spec struct {
	Kind   Kind
	Blocks int
	States int // blocks of a recurrent store that are reserved for the states of sequences
}

// Paged returns the configuration of a single store that keeps every position.
func Paged(blocks int) []Spec { return []Spec{{Kind: Full{}, Blocks: blocks}} }

// Cache manages the blocks of all sequences. It has one store for each kind of layer of the model.
// It is not safe for concurrent use.
type Cache struct {
	stores []store
	rows   int
	pool   []*Sequence // closed sequences, retained to reuse their memory
}

// New returns a cache of idle blocks for forwards with at most `rows` rows per sequence. It panics
// if a number of blocks is negative. The caller must check the sizes against the available memory.
func New(rows int, specs []Spec) *Cache {
	c := &Cache{rows: rows}
	for _, s := range specs {
		if s.Blocks < 0 {
			panic("kvcache: negative number of blocks")
		}
		c.stores = append(c.stores, newStore(s))
	}
	return c
}

// spareFactor is the ratio of the size of a bounded store to the number of blocks that running
// sequences need. The other blocks retain checkpoints and are reused in least recently used order.
const spareFactor = 2

// Sizes returns the stores for at most `sequences` sequences, whose contexts take `blocks` blocks
// in total, in forwards of at most `rows` rows. A bounded store gets at most spareFactor times the
// blocks that its sequences hold at once and that admission requires. A recurrent store gets one
// block per sequence for its state; the caller may add blocks for checkpoints.
func Sizes(kinds []Kind, blocks, sequences, rows int) (specs []Spec) {
	for _, k := range kinds {
		if k == (Recurrent{}) {
			specs = append(specs, Spec{Kind: k, Blocks: sequences, States: sequences})
			continue
		}
		n := blocks
		if k.Most() != All {
			// One block more per sequence, which admission requires to be available for its peers.
			n = min(n, spareFactor*sequences*(maxHeld(k, rows)+1))
		}
		specs = append(specs, Spec{Kind: k, Blocks: n})
	}
	return specs
}

// maxHeld returns the maximum number of blocks that a sequence of a bounded kind holds at once:
// the block before the current one and the blocks that it reads, for RollBack, and the blocks of a
// forward.
func maxHeld(k Kind, rows int) int { return k.Most() + 1 + BlocksFor(rows) + 1 }

// need returns the maximum number of blocks of a store that a sequence of n positions holds.
func (c *Cache) need(st *store, n int) int {
	if st.recurrent() {
		return min(1, n)
	}
	if st.bounded() {
		return min(BlocksFor(n), maxHeld(st.kind, c.rows))
	}
	return BlocksFor(n)
}

// Blocks returns the number of blocks of all stores.
func (c *Cache) Blocks() (n int) {
	for i := range c.stores {
		n += len(c.stores[i].blocks)
	}
	return n
}

// Idle returns the number of blocks that no sequence holds, with or without cached content.
func (c *Cache) Idle() (n int) {
	for i := range c.stores {
		n += c.stores[i].idle
	}
	return n
}

// Spare reports whether n blocks can be reserved now in every store that is not recurrent.
func (c *Cache) Spare(n int) bool {
	for i := range c.stores {
		if st := &c.stores[i]; !st.recurrent() && st.available() < n {
			return false
		}
	}
	return true
}

// Fits reports whether a sequence of n positions fits into the cache if it is the only one.
func (c *Cache) Fits(n int) bool {
	for i := range c.stores {
		if c.need(&c.stores[i], n) > len(c.stores[i].blocks) {
			return false
		}
	}
	return true
}
