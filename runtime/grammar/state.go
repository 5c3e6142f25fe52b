package grammar

import (
	"sandwich/runtime/grammar/internal/automaton"
)

// node is a stack of the program: the state on top, the completed rounds of its loop, and the stack
// below. Equal stacks share one node, so that they can be compared as pointers.
type node struct {
	state, count int32
	parent       *node
	id           uint32
	mark         uint32 // the last closure that visited it
	name         stackName
	above        *[kept]*node // cache of stacks with one more state on top
	closed       *closed      // its closure; nil until needed
	cost         float64      // bytes of the shortest completion of the answer
}

// stackName identifies a stack by its content, across machines of the same program.
type stackName [2]uint64

// on returns the name of the stack with one more state on top.
func (n stackName) on(state, count int32) stackName {
	x := uint64(uint32(state))<<32 | uint64(uint32(count))
	return stackName{automaton.Mixed(n[0] ^ x), automaton.Mixed(n[1] + 3*x + 1)}
}

// nameOf returns the name of a set of stacks, regardless of their order.
func nameOf(items []*node, end bool) (all stackName) {
	if end {
		all = stackName{1, 1}
	}
	for _, n := range items {
		all[0] += automaton.Mixed(n.name[0])
		all[1] += automaton.Mixed(n.name[1])
	}
	return all
}

type nodeKey struct {
	state, count int32
	parent       *node
}

// kept is the size of the cache node.above; a power of two.
const kept = 8

// state is a position of an answer: the stacks that the bytes so far allow, each at a state with
// edges.
type state struct {
	name   stackName
	items  []*node
	end    bool // the answer may end here
	cost   float64
	bytes  automaton.ByteSet // bytes that may follow
	near   []move            // known transitions
	next   *[256]*state      // the same as a table, if there are many
	mask   *Mask
	masked float64 // the largest cost after a token of mask
	text   int32   // region of texts that all stacks are in; 0: unknown; -1: none (textOf)
	kinds  *kindState
	freedom
}

// move is a transition: the state after each byte of a range.
type move struct {
	automaton.ByteRange
	to *state
}

// machine creates states on demand and caches them.
type machine struct {
	p      *automaton.Program
	nodes  map[nodeKey]*node
	states map[stackName]*state
	bytes  int64
	marks  uint32
	ids    uint32
	stack  []*node
	items  []*node
	to     []*node
	work   int64 // number of visited stacks
	cut    bool  // stacks were left out (maxStacks), which may depend on earlier states
	dead   *state
	tails  [manyTails]tailKept
	// entered is a cache of above.
	entered [manyEntered]entry
}

// entry is the state for a state of the program over a stack.
type entry struct {
	to   int32
	base *node
	at   *state
}

// manyEntered is the size of machine.entered; a power of two.
const manyEntered = 64

// closed is the closure of one stack: the stacks at states with edges that it reaches without
// reading a byte, and whether the answer may end there.
type closed struct {
	items []*node
	end   bool
}

// freedom describes the free loop of a state.
type freedom struct {
	loop  *automaton.FreeLoop // the largest; nil for none
	item  *node               // the stack that is in it
	run   int32               // the number of its characters that may follow; maxRun if unlimited
	after float64             // upper bound of the cost of the shortest end after such characters
	// The fields below are set by settle.
	known   bool
	counted bool   // characters are counted, so each leads to another state
	again   *state // the state after any of the characters, or nil
}

// kindState caches what walks by kinds need to know about a state.
type kindState struct {
	s      *state
	region int32
	// open is the number of arbitrary text characters that may follow, and after an upper bound of
	// the cost of the shortest end after them.
	open  int32
	after float64
	// loop are the kinds of a free loop, run the number of its characters that may follow, and
	// afterIt the cost after them.
	loop    uint64
	run     int32
	afterIt float64
	same    uint64       // kinds that are known to lead back to this state
	to      []*kindState // by kind: the state after a character; nil: unknown; noWay: none
}

// tailKept caches the result of goOn for a state and a tail.
type tailKept struct {
	s    *state
	tail int32
	cost float64 // below 0: the tail cannot follow
}

const manyTails = 1 << 10

// stateBytes limits the memory of states. States beyond it are not cached.
const stateBytes = 16 << 20
