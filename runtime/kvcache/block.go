package kvcache

// BlockTokens is the number of positions in one block. It equals the attention
// block of rule 6, so that one block is one term of the attention merge.
const BlockTokens = 64

// BlockID names one physical block of a store, from 0 on.
type BlockID int32

// Tables are the block tables of one sequence, one for each store: position p lies
// in block [p/BlockTokens]. Only what the store's kind reads is there.
type Tables [][]BlockID

// BlocksFor is the number of blocks that hold n positions.
func BlocksFor(n int) int { return (n + BlockTokens - 1) / BlockTokens }
