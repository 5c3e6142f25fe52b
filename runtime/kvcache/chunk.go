package kvcache

import "fmt"

// chunk remembers the chunk of a text that a row is in, and nothing before it: chunked attention.
// Positions are a multiple of a block's.
type chunk struct{ Positions int }

func (c chunk) Name() string { return fmt.Sprintf("chunks of %d", c.Positions) }

// Reads asks whether both are in one chunk.
func (c chunk) Reads(block, earlier int) bool {
	return block*BlockTokens/c.Positions == earlier*BlockTokens/c.Positions
}

// Most is how many blocks are before the last one of a chunk.
func (c chunk) Most() int { return c.Positions/BlockTokens - 1 }

// The chunk of Llama 4's models.
func init() { Register(chunk{8192}) }
