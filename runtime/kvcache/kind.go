package kvcache

import (
	"fmt"
	"maps"
	"slices"
)

// Kind determines which earlier blocks of a sequence a layer still reads; others are freed. Kinds
// are stateless and shared.
type Kind interface {
	// Name returns the name of the kind for messages, reports and Named.
	Name() string
	// Reads reports whether rows of a block read an earlier block. If a block does not read an
	// earlier block, no later block reads it either.
	Reads(block, earlier int) bool
	// Most returns the maximum number of earlier blocks that a block reads, or All if unbounded.
	Most() int
}

// All is returned by Most: a block may read any number of earlier blocks.
const All = -1

// Full is the kind of layers that read all earlier positions.
type Full struct{}

func (Full) Name() string        { return "full" }
func (Full) Reads(int, int) bool { return true }
func (Full) Most() int           { return All }

// Window is the kind of layers with sliding-window attention: a row at position p reads positions
// above p-Positions.
type Window struct{ Positions int }

func (w Window) Name() string { return fmt.Sprintf("window of %d", w.Positions) }

// Reads applies the window of the first row of the block, which starts earliest.
func (w Window) Reads(block, earlier int) bool {
	return earlier*BlockTokens+BlockTokens-1 > block*BlockTokens-w.Positions
}

// Most returns the number of blocks that the Positions-1 positions before a block are in.
func (w Window) Most() int { return BlocksFor(w.Positions - 1) }

// Passing is the kind of layers with bidirectional attention, which need all positions of a text
// during one forward and none of them afterwards. All layers of one Passing kind therefore use the
// same memory. Width is the attention window, 0 for none; layers with different windows have
// different kinds.
type Passing struct{ Width int }

// Name returns "passing" and the width.
func (p Passing) Name() string { return fmt.Sprintf("passing %d", p.Width) }

// Reads returns true: attention reads the whole text.
func (Passing) Reads(int, int) bool { return true }

// Most returns All.
func (Passing) Most() int { return All }

// Recurrent is the kind of layers that summarize all earlier positions in one state of fixed size,
// which every forward reads and overwrites. The rows of a block read the state at the end of the
// preceding block. A state does not grow and can be rolled back only to a retained copy, so
// recurrent stores have separate bookkeeping (state.go).
type Recurrent struct{}

func (Recurrent) Name() string                  { return "recurrent" }
func (Recurrent) Reads(block, earlier int) bool { return earlier == block-1 }
func (Recurrent) Most() int                     { return 1 }

// kinds holds the registered kinds by name.
var kinds = map[string]Kind{}

// Register makes a kind available to Named. It panics if the name is taken. Call it from init
// functions only: it is not safe for concurrent use.
func Register(k Kind) {
	if _, taken := kinds[k.Name()]; taken {
		panic("kvcache: the kind " + k.Name() + " is registered twice")
	}
	kinds[k.Name()] = k
}

// Named returns the kind registered under a name, or an error that lists the names.
func Named(name string) (Kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("unknown KV store kind %q; use one of %q", name, slices.Sorted(maps.Keys(kinds)))
}
