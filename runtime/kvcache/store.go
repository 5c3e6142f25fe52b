package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
)

// key is the chained hash of a block: SHA-256 over the key of the block before
// it and its own tokens. A cryptographic hash, because a collision would hand
// one client the context of another.
type key [sha256.Size]byte

// none stands in a table for a block that was freed.
const none BlockID = -1

// block is the bookkeeping of one physical block. It is in exactly one of two
// places: held by refs > 0 sequences, or linked into a list of idle ones.
type block struct {
	refs       int32
	indexed    bool    // key is valid and the block can be found by it
	worth      bool    // a sequence could go on from a checkpoint by it
	listed     bool    // idle and in kept, not in loose
	prev, next BlockID // in its list
	chain      BlockID // next block of the same hash bucket
	key        key
}

// store owns the blocks of one kind: who holds them, and which filled ones can be shared.
type store struct {
	kind    Kind
	blocks  []block
	buckets []BlockID // open hash index over indexed blocks; a power of two
	// Idle blocks in the order of reuse: first those without content and those whose content no one
	// wants back (loose), then the least recently used of those that a sequence could go on from.
	loose, kept list
	idle        int
	promised    int // of a bounded kind: blocks that open sequences may hold together
	states      int // of a recurrent store: blocks that nothing but states may hold ...
	held        int // ... and the states that there are
}

// list is a chain of idle blocks through their links.
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

// bounded tells whether the kind frees blocks behind it.
func (c *store) bounded() bool { return c.kind.Most() != All }

// recurrent tells whether the kind has one state for all positions.
func (c *store) recurrent() bool { return c.kind == Recurrent{} }

// available is how many blocks can be reserved now. What sequences of a bounded kind share is
// counted for each, since each goes on to blocks of its own.
func (c *store) available() int {
	if c.bounded() && !c.recurrent() {
		return len(c.blocks) - c.promised
	}
	return c.idle
}

// take removes the idle block to be used first and forgets what it held.
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
	c.blocks[id].refs, c.blocks[id].worth = 1, false
	return id
}

// drop gives back one reference.
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

// hold adds one reference; an idle block leaves the idle list with its content.
func (c *store) hold(id BlockID) {
	b := &c.blocks[id]
	if b.refs == 0 {
		c.unlink(id)
	}
	b.refs++
}

// find returns the block that holds the content of k, or none.
func (c *store) find(k *key) BlockID {
	for id := c.buckets[c.bucket(k)]; id != none; id = c.blocks[id].chain {
		if c.blocks[id].key == *k {
			return id
		}
	}
	return none
}

// index makes a filled block findable. Where another block holds the same
// content already, that one stays the one to share.
func (c *store) index(id BlockID, k *key) {
	if c.find(k) != none {
		return
	}
	b, slot := &c.blocks[id], c.bucket(k)
	b.key, b.indexed, b.chain = *k, true, c.buckets[slot]
	c.buckets[slot] = id
}

// forget takes a block out of the index, before it is overwritten.
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

// pushBack appends an idle block to its list.
func (c *store) pushBack(id BlockID) {
	b := &c.blocks[id]
	b.listed = b.indexed && b.worth
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

// pushFront puts an idle block without content where it is used first.
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
