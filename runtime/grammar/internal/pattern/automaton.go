package pattern

import (
	"regexp/syntax"

	"sandwich/runtime/grammar/internal/automaton"
)

// alphabet partitions all characters into classes that some expressions do not distinguish, so that
// their automata read classes: \p{L} has 650 ranges and is one class.
type alphabet struct {
	cuts  []rune            // the first characters of the ranges of the partition, ascending
	class []int32           // by range; -1: surrogates, which are not characters
	sets  []automaton.Runes // the characters of each class
}

// charReader is the program of an expression with the sets of characters that its instructions
// read.
type charReader struct {
	*syntax.Prog
	sets []automaton.Runes
	set  []int32 // by instruction; -1 if it reads no character
}

// dfa is the deterministic automaton of an expression, whose states are created on demand: sets of
// positions in the expression at which a match may be. A look-ahead is a second automaton that must
// or must not match in parallel (as in alternating automata: Chandra, Kozen and Stockmeyer, 1981);
// a look-behind is one that runs from the start of the text.
type dfa struct {
	b       *Patterns
	looks   []look
	letters *alphabet
	progs   []dfaProgram // the expression, followed by its look-arounds
	// musts are sets of started look-aheads that must still be decided; the first set is empty.
	musts  [][]promise
	mustAt map[string]int32
	ends   map[int32]bool
	front  bool // a match can begin only at the start of the text
	taken  int  // bytes charged to the meter
}

// dfaProgram is the program of the expression or of a look-around, and the states reached so far.
type dfaProgram struct {
	prog  *syntax.Prog
	takes [][]bool // by instruction and character class: whether the instruction reads it
	all   []threads
	ids   map[string]int32
	moves map[dfaMove]int32
	marks []uint32 // by instruction: the last closure that visited it without promises
	mark  uint32
}

// dfaMove is a transition by a character class. behind are the look-behinds that hold after it; a
// look-ahead does not track them itself.
type dfaMove struct {
	id, letter int32
	behind     uint64
}

// threads are the positions at which an expression may be, and whether it has matched. After a
// match any text may follow, except in a look-behind, which must match exactly where it is
// asserted.
type threads struct {
	list    []thread
	matched bool
	front   bool    // no character has been read
	behind  []int32 // main expression only: the state of each look-behind
	holds   uint64  // main expression only: the look-behinds that hold here
}

// thread is an instruction, and the set of look-aheads that must hold together with it.
type thread struct {
	pc   uint32
	must int32
}

// promise is the state of a started look-ahead.
type promise struct{ look, at int32 }

// maxLooks is the largest number of look-arounds of an expression, and maxThreads the largest
// number of positions at which it may be at once.
const (
	maxLooks   = 60
	maxThreads = 1 << 13
)
