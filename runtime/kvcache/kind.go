package kvcache

import (
	"fmt"
	"maps"
	"slices"
)

// Kind is what a layer remembers: of a sequence's blocks of 64 positions, those that later rows
// read. The rest is freed. A kind holds no state; every sequence asks the same one.
type Kind interface {
	// Name is for messages and reports.
	Name() string
	// Reads tells whether the rows of a block read an earlier block. What a block does not read no
	// later block reads either.
	Reads(block, earlier int) bool
	// Most is how many earlier blocks a block reads at most; All where there is no such bound.
	Most() int
}

// All is the Most of a kind that forgets nothing.
const All = -1

// Full remembers every position.
type Full struct{}

func (Full) Name() string        { return "full" }
func (Full) Reads(int, int) bool { return true }
func (Full) Most() int           { return All }

// Window remembers what attention with a sliding window sees: a row at position p reads the
// positions above p-Positions.
type Window struct{ Positions int }

func (w Window) Name() string { return fmt.Sprintf("window of %d", w.Positions) }

// Reads asks for the first row of the block, which reaches back furthest.
func (w Window) Reads(block, earlier int) bool {
	return earlier*BlockTokens+BlockTokens-1 > block*BlockTokens-w.Positions
}

// Most is how many blocks the Positions-1 positions before the start of a block lie in.
func (w Window) Most() int { return BlocksFor(w.Positions - 1) }

// Passing remembers all positions of a text while one forward reads it: attention in both
// directions needs the whole text at once, and nothing of it afterwards. Layers of one Passing kind
// therefore write over each other in the same memory. Width tells the layers with a window from the
// others, since what they see differs.
type Passing struct{ Width int }

// Name is for messages and reports.
func (p Passing) Name() string { return fmt.Sprintf("passing %d", p.Width) }

// Reads is true: a text is there as a whole.
func (Passing) Reads(int, int) bool { return true }

// Most is All.
func (Passing) Most() int { return All }

// Recurrent remembers all positions in one state of fixed size, which every forward reads and
// overwrites: what the rows of a block read is the state behind the block before. Its store has a
// bookkeeping of its own (state.go), since a state does not grow and cannot be taken back by less
// than a kept copy of an earlier one.
type Recurrent struct{}

func (Recurrent) Name() string                  { return "recurrent" }
func (Recurrent) Reads(block, earlier int) bool { return earlier == block-1 }
func (Recurrent) Most() int                     { return 1 }

var kinds = map[string]Kind{}

// Register makes a kind known by its name, so that a model's layers may ask for it. It panics where
// the name is taken.
func Register(k Kind) {
	if _, taken := kinds[k.Name()]; taken {
		panic("kvcache: the kind " + k.Name() + " is registered twice")
	}
	kinds[k.Name()] = k
}

// Named finds a registered kind, or says which there are.
func Named(name string) (Kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("no store is called %q, there are %q", name, slices.Sorted(maps.Keys(kinds)))
}
