package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
)

// key is the chained hash of a block: SHA-256 of the key of the previous block and the tokens of
// the block. The hash is cryptographic because a collision would give one client another client's
// context.
type key [sha256.Size]byte

// none means "no block" in tables and lists.
const none BlockID = -1

// block holds the metadata of one physical block. A block is either held by refs > 0 sequences or
// in one of the lists of idle blocks.
type block struct {
	refs       int32
	indexed    bool    // key is valid and the block is in the index
	checkpoint bool    // the block is part of a checkpoint
	listed     bool    // the block is idle and in kept, not in loose
	prev, next BlockID // in its list
	chain      BlockID // next block of the same hash bucket
	key        key
}

// store owns the blocks of one kind and tracks which are held and which can be shared.
type store struct {
	kind    Kind
	blocks  []block
	buckets []BlockID // hash index of indexed blocks, chained; the length is a power of two
	// Idle blocks in order of reuse: first loose, the blocks without content or outside
	// checkpoints; then kept, the blocks of checkpoints, least recently used first.
	loose, kept list
	idle        int
	promised    int // total quota of open sequences in a bounded store
	states      int // blocks of a recurrent store that only states may use
	held        int // states in use
	pins        []BlockID
}

// list is a doubly linked list of idle blocks.
type list struct{ first, last BlockID }

func newStore(s Spec) store {
	size := 1
	for size < 2*s.Blocks {
		size *= 2
	}
	empty := list{none, none}
	c := store{kind: s.Kind, blocks: make([]block, s.Blocks), buckets: make([]BlockID, size), loose: empty,
		kept: empty, states: s.States}
	for i := range c.buckets {
		c.buckets[i] = none
	}
	for i := range c.blocks {
		c.blocks[i].chain = none
		c.pushBack(BlockID(i))
	}
	return c
}

// bounded reports whether the kind frees blocks that are no longer read.
func (c *store) bounded() bool { return c.kind.Most() != All }

// recurrent reports whether the kind is Recurrent.
func (c *store) recurrent() bool { return c.kind == Recurrent{} }

// available returns the number of blocks that can be reserved now. A block shared in a bounded
// store counts once per sequence, since each sequence will need a block of its own.
func (c *store) available() int {
	if c.bounded() && !c.recurrent() {
		return len(c.blocks) - c.promised
	}
	return c.idle
}

// take removes the next idle block to reuse from its list and the index, and returns it with one
// reference. It panics if no block is idle.
func (c *store) take() BlockID {
	id := c.loose.first
	if id == none {
		id = c.kept.first
	}
	if id == none {
		panic("kvcache: no idle block is left of those that were reserved")
	}
	c.unlink(id)
	c.forget(id)
	c.blocks[id].refs, c.blocks[id].checkpoint = 1, false
	return id
}

// drop removes one reference. A block without references becomes idle.
func (c *store) drop(id BlockID) {
	b := &c.blocks[id]
	b.refs--
	if b.refs > 0 {
		return
	}
	if b.indexed {
		c.pushBack(id)
	} else {
		c.pushFront(id)
	}
}

// hold adds one reference. An idle block leaves its list and retains its content.
func (c *store) hold(id BlockID) {
	b := &c.blocks[id]
	if b.refs == 0 {
		c.unlink(id)
	}
	b.refs++
}

// find returns the block with key k, or none.
func (c *store) find(k *key) BlockID {
	for id := c.buckets[c.bucket(k)]; id != none; id = c.blocks[id].chain {
		if c.blocks[id].key == *k {
			return id
		}
	}
	return none
}

// index adds a full block to the index, unless another block with the same key is already there.
func (c *store) index(id BlockID, k *key) {
	if c.find(k) != none {
		return
	}
	b, slot := &c.blocks[id], c.bucket(k)
	b.key, b.indexed, b.chain = *k, true, c.buckets[slot]
	c.buckets[slot] = id
}

// forget removes a block from the index. It must be called before the block is overwritten.
func (c *store) forget(id BlockID) {
	b := &c.blocks[id]
	if !b.indexed {
		return
	}
	at := &c.buckets[c.bucket(&b.key)]
	for *at != id {
		at = &c.blocks[*at].chain
	}
	*at, b.chain, b.indexed = b.chain, none, false
}

func (c *store) bucket(k *key) uint64 {
	return binary.LittleEndian.Uint64(k[:8]) & uint64(len(c.buckets)-1)
}

// pushBack appends an idle block to kept if it is part of a checkpoint, else to loose.
func (c *store) pushBack(id BlockID) {
	b := &c.blocks[id]
	b.listed = b.indexed && b.checkpoint
	l := c.listOf(b)
	b.prev, b.next = l.last, none
	if l.last == none {
		l.first = id
	} else {
		c.blocks[l.last].next = id
	}
	l.last = id
	c.idle++
}

// pushFront puts an idle block without content at the front of loose, so that it is reused first.
func (c *store) pushFront(id BlockID) {
	b := &c.blocks[id]
	b.listed = false
	b.prev, b.next = none, c.loose.first
	if c.loose.first == none {
		c.loose.last = id
	} else {
		c.blocks[c.loose.first].prev = id
	}
	c.loose.first = id
	c.idle++
}

func (c *store) listOf(b *block) *list {
	if b.listed {
		return &c.kept
	}
	return &c.loose
}

func (c *store) unlink(id BlockID) {
	b := &c.blocks[id]
	l := c.listOf(b)
	if b.prev == none {
		l.first = b.next
	} else {
		c.blocks[b.prev].next = b.next
	}
	if b.next == none {
		l.last = b.prev
	} else {
		c.blocks[b.next].prev = b.prev
	}
	b.prev, b.next = none, none
	c.idle--
}
