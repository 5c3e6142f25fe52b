package kvcache

// Spec is the size of one store of a cache.
type Spec struct {
	Kind   Kind
	Blocks int
	States int // of a recurrent store: how many of its blocks are for the states of sequences alone
}

// Paged is one store that remembers everything.
func Paged(blocks int) []Spec { return []Spec{{Kind: Full{}, Blocks: blocks}} }

// Cache is the bookkeeping of every sequence's memory: a list of stores, one for each kind of layer
// that the model has.
type Cache struct {
	stores []store
	rows   int
	pool   []*Sequence // closed sequences, kept for their memory
}

// New returns a cache of idle blocks for forwards of at most `rows` rows of one sequence. It panics
// for a negative number, which is a programming error: sizes are checked by the caller against the
// memory there is.
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

// spareFactor is how many times the blocks that running sequences need a bounded store has: the
// rest keeps what checkpoints need, least recently used first to go.
const spareFactor = 2

// Sizes are the stores for contexts of `blocks` blocks together, of at most `sequences` sequences
// in forwards of at most `rows` rows: a kind that forgets needs no more than its sequences hold at
// once, and as much again for checkpoints; a recurrent one the states of its sequences, next to
// which the caller may add blocks for checkpoints.
func Sizes(kinds []Kind, blocks, sequences, rows int) (specs []Spec) {
	for _, k := range kinds {
		if k == (Recurrent{}) {
			specs = append(specs, Spec{Kind: k, Blocks: sequences, States: sequences})
			continue
		}
		n := blocks
		if k.Most() != All {
			// A block more for each, which admission requires in addition to a new sequence.
			n = min(n, spareFactor*sequences*(mostHeld(k, rows)+1))
		}
		specs = append(specs, Spec{Kind: k, Blocks: n})
	}
	return specs
}

// mostHeld is how many blocks a sequence of a bounded kind holds at once: those that the block
// before the current one reads and that block, for rolling back, and those of a forward.
func mostHeld(k Kind, rows int) int { return k.Most() + 1 + BlocksFor(rows) + 1 }

// need is how many blocks of a store n positions take at most.
func (c *Cache) need(st *store, n int) int {
	if st.recurrent() {
		return min(1, n)
	}
	if st.bounded() {
		return min(BlocksFor(n), mostHeld(st.kind, c.rows))
	}
	return BlocksFor(n)
}

// Blocks is the number of blocks of all stores.
func (c *Cache) Blocks() (n int) {
	for i := range c.stores {
		n += len(c.stores[i].blocks)
	}
	return n
}

// Idle returns the number of blocks that no sequence holds: those without content and those whose
// content is not in use.
func (c *Cache) Idle() (n int) {
	for i := range c.stores {
		n += c.stores[i].idle
	}
	return n
}

// Spare tells whether each store that grows with a sequence has n blocks that can be reserved now.
func (c *Cache) Spare(n int) bool {
	for i := range c.stores {
		if st := &c.stores[i]; !st.recurrent() && st.available() < n {
			return false
		}
	}
	return true
}

// Fits tells whether a sequence of n positions could be there alone.
func (c *Cache) Fits(n int) bool {
	for i := range c.stores {
		if c.need(&c.stores[i], n) > len(c.stores[i].blocks) {
			return false
		}
	}
	return true
}
