package api

// Format states the form of an answer. The owner of the vocabulary compiles it into a Constraint.
type Format struct {
	Kind  FormatKind
	Text  string // the schema or grammar
	Param string // request field that holds the format; error messages name it
}

// FormatKind tells how Format.Text is interpreted.
type FormatKind uint8

// Kinds of formats.
const (
	FreeText   FormatKind = iota
	JSONObject            // any JSON object
	JSONSchema            // JSON that Text, a JSON Schema, allows
	GBNF                  // text that Text, a GBNF grammar, allows
)

// Constraint follows one answer and determines which tokens may come next. runtime/grammar.Matcher
// implements it. The engine calls it from one goroutine at a time.
type Constraint interface {
	// Allowed returns the tokens that may come next if at most left tokens remain to be generated.
	// Token 64i+j is bit j of word i. The slice is valid until the next call.
	Allowed(left int) []uint64
	// Only returns the next token if Allowed would contain exactly one.
	Only(left int) (id int32, ok bool)
	// Accept advances by a token.
	Accept(id int32) error
	// MustEnd reports whether the answer is complete and nothing may follow.
	MustEnd() bool
}
