package grammar

import "sandwich/runtime/grammar/internal/automaton"

// Error reports why a grammar was refused. Path is a JSON pointer into a schema, a line of GBNF, or
// empty.
type Error = automaton.Error
