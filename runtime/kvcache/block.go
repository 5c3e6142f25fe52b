package kvcache

// BlockTokens is the number of positions in one block. It equals the attention block of rule 6, so
// that each block contributes one term to the attention merge.
const BlockTokens = 64

// BlockID identifies a physical block of a store. IDs start at 0.
type BlockID int32

// Tables are the block tables of one sequence, one per store: position p is in block
// [p/BlockTokens]. Blocks that the store's kind no longer reads are absent. The table of a
// recurrent store has the layout described in state.go.
type Tables [][]BlockID

// BlocksFor returns the number of blocks needed for n positions.
func BlocksFor(n int) int { return (n + BlockTokens - 1) / BlockTokens }
