package automaton

// Expr is a set of byte strings.
type Expr interface{}

type (
	// Empty is the set with the empty string; nothing is the empty set.
	Empty   struct{}
	Nothing struct{}
	// Literal is the set with one string.
	Literal string
	// Words is a set of strings. Shared prefixes are matched once.
	Words []string
	// Sequence is the concatenation of expressions, choice their union.
	Sequence []Expr
	Choice   []Expr
	// Repeat is least to most repetitions of body; most < 0 means no limit.
	Repeat struct {
		Body        Expr
		Least, Most int
	}
	// Call is the set of a rule of the grammar.
	Call struct{ Rule RuleID }
)

// RuleID is the number of a rule of a builder.
type RuleID int

// Optional returns zero or one repetition of e.
func Optional(e Expr) Expr { return Repeat{e, 0, 1} }

// Star returns any number of repetitions of e.
func Star(e Expr) Expr { return Repeat{e, 0, -1} }

// Inner matches a JSON string, including its quotes. When the builder compiles it to states, it
// records which characters are distinguished, so that masks can work on kinds of characters
// (kindtrie.go).
type Inner struct{ Body Expr }

// escape is the part of such a text after a backslash.
type escape struct{ body Expr }
