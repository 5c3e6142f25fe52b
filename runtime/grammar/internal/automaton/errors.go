package automaton

import "fmt"

// Error reports why a grammar was refused. Path is a JSON pointer into a schema, a line of GBNF, or
// empty.
type Error struct {
	Path, Message string
	None          bool  // no value satisfies the schema
	Limit         bool  // a limit of the Meter was exceeded, or its context ended
	cause         error // error of the context
	Owner         any   // the *Schema that the error refers to; nil for none
	Located       bool  // Path is that of the smallest unsatisfiable part
}

// Unwrap returns the error of the context that ended the compilation, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Limited reports whether a limit of the Meter was exceeded. The grammar may compile with larger
// limits.
func (e *Error) Limited() bool { return e.Limit && e.cause == nil }

// Error returns the path and the message.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Unsatisfied returns the error for a schema that no value satisfies.
func Unsatisfied(path, format string, args ...any) *Error {
	e := Refuse(path, "no value satisfies the schema: "+format, args...)
	e.None = true
	return e
}

// Refuse returns an Error with a formatted message.
func Refuse(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

// Clip shortens a text for an error message.
func Clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
