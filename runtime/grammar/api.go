package grammar

import (
	"context"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema"
)

type (
	// Error reports why a grammar was refused. Path is a JSON pointer into a schema, a line of
	// GBNF, or empty.
	Error = automaton.Error
	// Schema is a JSON Schema whose parts are used in a composed grammar. It must be used by only
	// one compilation at a time.
	Schema = schema.Schema
)

// NewSchema returns a Schema. If note is nil, unsupported keywords are errors. Otherwise they are
// left out and all others are kept: note is called with the path and the reason of each. It may be
// called several times for the same path.
func NewSchema(text []byte, note func(path, reason string)) *Schema {
	return schema.NewSchema(text, note)
}

// Owner returns the Schema that an error refers to, or nil.
func Owner(err error) *Schema { return schema.Owner(err) }

// Limits limit the compilation of one grammar. A zero field means its default.
type Limits struct {
	Bytes int64 // memory in use at any time
	Work  int64 // elementary steps of 10 to 20 ns each
	// Memory limits what is cached for answers under the grammar; nil means a separate Memory.
	Memory *Memory
}

// Meter counts the memory and the work of compiling a grammar. It ends the compilation if a limit
// is exceeded or its context ends. A Meter may compile several grammars one after another: each has
// the whole memory, and all share the work. It must not be used concurrently.
type Meter struct {
	*automaton.Meter
	memory *Memory
}

// NewMeter returns a Meter for compilations that end when ctx ends.
func NewMeter(ctx context.Context, l Limits) *Meter {
	if l.Memory == nil {
		l.Memory = NewMemory()
	}
	return &Meter{automaton.NewMeter(ctx, l.Bytes, l.Work), l.Memory}
}

// FromSchema compiles a JSON Schema with default limits; see Meter.FromSchema.
func FromSchema(schema []byte) (*Grammar, error) {
	return NewMeter(context.Background(), Limits{}).FromSchema(schema)
}

// FromSchema compiles a JSON Schema (draft 2020-12, and items, definitions and dependencies of
// draft 7). Answers have the members of objects in the order of the schema's properties, followed
// by additional ones. An unsupported keyword is an *Error with the path of the keyword. Keywords
// that only describe and unknown formats are ignored.
func (m *Meter) FromSchema(text []byte) (*Grammar, error) {
	p, err := schema.Compile(text, m.Meter)
	if err != nil {
		return nil, err
	}
	return newGrammar(p, m.memory), nil
}
