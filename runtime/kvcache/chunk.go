package kvcache

import "fmt"

// Chunk remembers the chunk of a text that a row is in, and nothing before it: chunked attention.
// Positions are a multiple of a block's.
type Chunk struct{ Positions int }

func (c Chunk) Name() string { return fmt.Sprintf("chunks of %d", c.Positions) }

// Reads asks whether both are in one chunk.
func (c Chunk) Reads(block, earlier int) bool {
	return block*BlockTokens/c.Positions == earlier*BlockTokens/c.Positions
}

// Most is how many blocks are before the last one of a chunk.
func (c Chunk) Most() int { return c.Positions/BlockTokens - 1 }

// The chunk of Llama 4's models.
func init() { Register(Chunk{8192}) }
