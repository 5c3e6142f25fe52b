package kvcache

import "fmt"

// chunk is the kind of chunked attention: a row reads only positions of its own chunk of the
// sequence. Positions is the length of a chunk, a multiple of BlockTokens.
type chunk struct{ Positions int }

func (c chunk) Name() string { return fmt.Sprintf("chunks of %d", c.Positions) }

// Reads reports whether both blocks are in the same chunk.
func (c chunk) Reads(block, earlier int) bool {
	return block*BlockTokens/c.Positions == earlier*BlockTokens/c.Positions
}

// Most returns the number of blocks in a chunk before its last block.
func (c chunk) Most() int { return c.Positions/BlockTokens - 1 }

// Llama 4 models use chunks of 8192 positions.
func init() { Register(chunk{8192}) }
