// Package automaton builds programs: grammars as automata over bytes. Expressions describe sets of
// strings; a Builder writes them as the automata of rules and reduces these; a Meter limits the
// memory and the work of it.
package automaton

// Program is a grammar as automata: one per rule, and one per body of a loop.
type Program struct {
	States   []pstate
	Start    int32
	Free     []FreeLoop
	Edges    []edge   // edges of all states, consecutively
	Tops     []topWay // by state
	Heavy    []int32  // states with many words (followed)
	Reached  []reach  // by state; nil if not needed
	Open     []openAt // by state; nil if no state is open
	Texts    []int32  // by state: its region of texts; 0 for none
	Kinds    []*Kinds // by region
	CharText int32    // region of the rule for one character, which other regions call
	Bytes    int64    // approximate size
}

// topWay is the part of a state that most masks use. It is stored separately so that the states of
// large enums lie close together.
type topWay struct {
	Dist   float64 // copy of pstate.dist
	First  int32   // index of its edges
	Count  uint16
	Simple bool // it has only edges, at most one per byte, and is not final
}

// pstate is a state of the automaton of a rule.
type pstate struct {
	Edges []edge
	Dist  float64 // bytes of the shortest path to the end of its rule; +Inf if there is none
	Free  int32   // index of its freeLoop plus 1; 0 for none
	Final bool
	Eps   []int32
	Calls []callEdge
	Loop  *LoopState
}

type edge struct {
	ByteRange
	To int32
}

// callEdge calls a rule and continues at back.
type callEdge struct{ Start, Back int32 }

// LoopState is a loop with a counter. While fewer than most rounds are complete, it may enter body,
// which returns to it; after least rounds it may continue at next. Rounds of an unlimited loop are
// counted up to least.
type LoopState struct {
	Body, Next  int32
	Least, Most int32 // most < 0: unlimited
	Free        int32 // index plus 1 of the freeLoop whose characters are one round each; 0 for none
}

// FreeLoop is a state of a program, or a loop, that any characters of some classes lead back to. An
// answer in such a state may continue with any tokens of these characters. Most generated text is
// inside a string or free text, where most tokens are of this kind.
type FreeLoop struct {
	Of    Classes
	Bytes ByteSet // first bytes of the characters
	To    int32   // the state after a character
	Exact bool    // the characters lead to this state only
	Idle  bool    // all states of the loop are open (openAt)
}

// reach says what can be reached from a state by characters that JSON strings contain unescaped.
type reach uint8

const (
	ReachesBlank reach = 1 << iota // an edge that reads a control character, such as a line feed or a tab
	ReachesEnd                     // the end of the rule
)

// openAt describes a state of a program after which any characters that JSON strings contain
// unescaped may follow: at least run of them, and after each of them the shortest path to the end
// of the rule has at most after bytes. A free loop is a single such state; openAt covers whole
// regions of states, such as those of a string that must not match an expression.
type openAt struct {
	Run   int32 // maxRun if unlimited
	After float32
}

// Kinds partition the characters of texts by the sets that a region distinguishes.
type Kinds struct {
	cuts []rune  // the first characters of the ranges of the partition
	kind []uint8 // by range
	One  []rune  // by kind: a character that texts contain unescaped
	Name string  // identifies the partition
}

// Distance returns the number of bytes of the shortest path to the end of the rule.
func (p *Program) Distance(s, count int32) float64 {
	l := p.States[s].Loop
	if l == nil || count == 0 {
		return p.States[s].Dist
	}
	d := p.States[l.Next].Dist
	if rounds := l.Least - count; rounds > 0 {
		d += float64(rounds) * p.States[l.Body].Dist
	}
	return d
}
