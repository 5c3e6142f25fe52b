package api

// Format states the form of an answer. The owner of the vocabulary makes a Constraint from it.
type Format struct {
	Kind  FormatKind
	Text  string // the schema, the grammar
	Param string // the field that asked for it, which refusals name
}

// FormatKind tells what Format.Text is.
type FormatKind uint8

// What an answer may have to be.
const (
	FreeText   FormatKind = iota
	JSONObject            // any object
	JSONSchema            // what Text, a JSON Schema, allows
	GBNF                  // what Text, a grammar in GBNF, allows
)

// Constraint follows one answer and says which tokens may come next (runtime/grammar.Matcher is
// one). The engine calls it from one goroutine.
type Constraint interface {
	// Allowed are the tokens that may come next where so many are left to generate: token 64i+j is
	// bit j of word i. It is valid until the next call.
	Allowed(left int) []uint64
	// Only is the token that comes next where Allowed has no other.
	Only(left int) (id int32, ok bool)
	// Accept goes on behind a token.
	Accept(id int32) error
	// MustEnd tells that the answer is whole and nothing may follow.
	MustEnd() bool
}
