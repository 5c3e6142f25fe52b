package automaton

// MaxCount is the largest count of a repetition.
const MaxCount = 1 << 24

// Builder writes a program. Rules are created first and defined later, so that they may call each
// other.
type Builder struct {
	Program
	Rules []ruleDef
	Meter *Meter
	// Rules that are written once: one character of a JSON string, a whole string, the rest of its
	// characters, white space, any value. They are -1 before they exist.
	plain, quoted, rest, blank, any RuleID
	// multiples are states shared by many numbers, classes the automata of large character classes,
	// and tails states inside characters.
	multiples map[multiple]int32
	classes   map[uint64]int32
	tails     map[tail]int32
	// Patterns is the cache of parsed expressions (package pattern).
	Patterns any
	// regions are the regions of texts (kinds.go), and inside is the number of the current one; 0
	// for none.
	regions []textRegion
	inside  int32
	// Unwritten is the number of bytes of expressions that are released after writing.
	Unwritten int
	// Wholes are the schemas that an answer may have to satisfy as a whole. diagnosing keeps their
	// rules separate, to find out which part of an unsatisfiable schema is the cause.
	Wholes     []WholeRule
	Diagnosing bool
	// writing is set when rules are written; no rule may be created after that.
	writing bool
	// Refused is the error of a rule that cannot be written.
	Refused *Error
	// Partly reports that a negated schema was only partly excluded.
	Partly bool
}

// WholeRule is a rule that an answer may have to satisfy as a whole. refuse returns the error if no
// text satisfies it.
type WholeRule struct {
	Rule   RuleID
	Refuse func() error
}

type ruleDef struct {
	Path  string
	Of    any // owner of the path; nil if errors need not name it
	body  Expr
	Start int32
	end   int32
	// inlined reports that the rule replaces its only call.
	inlined bool
}

// Automaton is an expression that writes its own states.
type Automaton func(b *Builder, from, to int32)

// textRegion describes the states of one text, or of several texts that share states.
type textRegion struct {
	sets  map[uint64]Runes // the sets of characters on its edges, by hash
	size  int              // number of ranges in sets
	any   bool             // one of its edges reads any character
	wide  bool             // one of its states reads at least minWide one-byte characters
	up    int32            // the region that it was joined to; its own number if none
	mixed bool             // it has states outside texts, or distinguishes too many characters
}

// multiple is a position in a multiple of a number that no bound limits any more: the remainder of
// the digits so far, and missing to digits digits that follow.
type multiple struct {
	of, rest        int64
	digits, missing int
	rests           string // see restText
}

// tail identifies a state inside a character: the bytes that it reads, and where they lead.
type tail struct {
	to, inside int32
	reads      string
}

// NewBuilder returns a builder that charges its memory and work to m.
func NewBuilder(m *Meter) *Builder {
	return &Builder{Meter: m, plain: -1, quoted: -1, rest: -1, blank: -1, any: -1}
}

// Rule creates a rule, which Define must define later. path names it in errors and may be empty.
func (b *Builder) Rule(path string) RuleID {
	if b.writing {
		panic("grammar: rule created after rules were written")
	}
	b.Meter.Take(2 * stateCost)
	b.Rules = append(b.Rules, ruleDef{Path: path, body: Nothing{}})
	return RuleID(len(b.Rules) - 1)
}

// Define sets the expression of a rule.
func (b *Builder) Define(r RuleID, e Expr) { b.Rules[r].body = e }

// State adds a state without edges.
func (b *Builder) State() int32 {
	b.grow(stateCost)
	b.States = append(b.States, pstate{})
	b.Texts = append(b.Texts, b.inside)
	return int32(len(b.States) - 1)
}

// grow counts bytes of the program.
func (b *Builder) grow(n int) { b.Meter.Take(n) }

// Edge adds an edge that reads a byte in a range.
func (b *Builder) Edge(from, to int32, r ByteRange) {
	b.grow(edgeCost)
	b.States[from].Edges = append(b.States[from].Edges, edge{r, to})
}

// Eps adds an edge that reads nothing.
func (b *Builder) Eps(from, to int32) {
	b.grow(wayCost)
	b.States[from].Eps = append(b.States[from].Eps, to)
}

// size returns the number of states and of all edges out of them.
func (b *Builder) size() (states, ways int) {
	for i := range b.States {
		s := &b.States[i]
		ways += len(s.Edges) + len(s.Eps) + len(s.Calls)
	}
	return len(b.States), ways
}
