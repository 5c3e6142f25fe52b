package kvcache

import (
	"crypto/sha256"
	"encoding/binary"
)

// key is the chained hash of a block: SHA-256 over the key of the block before
// it and its own tokens. A cryptographic hash, because a collision would hand
// one client the context of another.
type key [sha256.Size]byte

const none BlockID = -1

// block is the bookkeeping of one physical block. It is in exactly one of two
// places: held by refs > 0 sequences, or linked into the idle list.
type block struct {
	refs       int32
	indexed    bool    // key is valid and the block can be found by it
	prev, next BlockID // idle list
	chain      BlockID // next block of the same hash bucket
	key        key
}

// Cache owns every block: who holds it, and which filled blocks can be shared.
type Cache struct {
	blocks  []block
	buckets []BlockID // open hash index over indexed blocks; a power of two
	// The idle list is the order of reuse: blocks without content stand at the
	// front, filled ones are appended at the back when their last holder goes,
	// so that the least recently used content is overwritten first.
	first, last BlockID
	idle        int
	pool        []*Sequence // closed sequences, kept for their memory
}

// New returns a cache of the given number of blocks, all idle. It panics for a
// negative number, which is a programming error: sizes are checked by the caller
// against the memory there is.
func New(blocks int) *Cache {
	if blocks < 0 {
		panic("kvcache: negative number of blocks")
	}
	size := 1
	for size < 2*blocks {
		size *= 2
	}
	c := &Cache{blocks: make([]block, blocks), buckets: make([]BlockID, size), first: none, last: none}
	for i := range c.buckets {
		c.buckets[i] = none
	}
	for i := range c.blocks {
		c.blocks[i].chain = none
		c.pushBack(BlockID(i))
	}
	return c
}

// Blocks is the number of blocks there are.
func (c *Cache) Blocks() int { return len(c.blocks) }

// Available is the number of blocks that can be reserved now: those that hold
// nothing and those whose content nobody uses at present.
func (c *Cache) Available() int { return c.idle }

// take removes the front of the idle list and forgets what the block held.
func (c *Cache) take() BlockID {
	id := c.first
	c.unlink(id)
	c.forget(id)
	c.blocks[id].refs = 1
	return id
}

// drop gives back one reference.
func (c *Cache) drop(id BlockID) {
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
func (c *Cache) hold(id BlockID) {
	b := &c.blocks[id]
	if b.refs == 0 {
		c.unlink(id)
	}
	b.refs++
}

// find returns the block that holds the content of k, or none.
func (c *Cache) find(k *key) BlockID {
	for id := c.buckets[c.bucket(k)]; id != none; id = c.blocks[id].chain {
		if c.blocks[id].key == *k {
			return id
		}
	}
	return none
}

// index makes a filled block findable. Where another block holds the same
// content already, that one stays the one to share.
func (c *Cache) index(id BlockID, k *key) {
	if c.find(k) != none {
		return
	}
	b, slot := &c.blocks[id], c.bucket(k)
	b.key, b.indexed, b.chain = *k, true, c.buckets[slot]
	c.buckets[slot] = id
}

// forget takes a block out of the index, before it is overwritten.
func (c *Cache) forget(id BlockID) {
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

func (c *Cache) bucket(k *key) uint64 {
	return binary.LittleEndian.Uint64(k[:8]) & uint64(len(c.buckets)-1)
}

func (c *Cache) pushBack(id BlockID) {
	b := &c.blocks[id]
	b.prev, b.next = c.last, none
	if c.last == none {
		c.first = id
	} else {
		c.blocks[c.last].next = id
	}
	c.last = id
	c.idle++
}

func (c *Cache) pushFront(id BlockID) {
	b := &c.blocks[id]
	b.prev, b.next = none, c.first
	if c.first == none {
		c.last = id
	} else {
		c.blocks[c.first].prev = id
	}
	c.first = id
	c.idle++
}

func (c *Cache) unlink(id BlockID) {
	b := &c.blocks[id]
	if b.prev == none {
		c.first = b.next
	} else {
		c.blocks[b.prev].next = b.next
	}
	if b.next == none {
		c.last = b.prev
	} else {
		c.blocks[b.next].prev = b.prev
	}
	b.prev, b.next = none, none
	c.idle--
}
