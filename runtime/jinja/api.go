package jinja

import "sandwich/runtime/jinja/internal/object"

type (
	// Text is a string with the origins of its parts.
	Text = object.Text
	// Span is a range of a text with an origin other than the template.
	Span = object.Span
	// Origin identifies the source of a part of a text. Callers number their sources from 1; 0 is
	// the template.
	Origin = object.Origin
	// List is a Python list or tuple.
	List = object.List
	// Dict is a mapping that keeps the insertion order of its keys.
	Dict = object.Dict
	// Limits bound one rendering. All are needed; a limit of 0 allows nothing.
	Limits = object.Limits
	// LimitError reports the limit that a template exceeded.
	LimitError = object.LimitError
	// RaisedError is the message of a call of raise_exception.
	RaisedError = object.RaisedError
)

// NewList returns a list of values.
func NewList(items ...any) *List { return object.NewList(items...) }

// FromJSON parses one JSON value into the values that templates use. Objects keep the order of
// their keys.
func FromJSON(text []byte) (any, error) { return object.FromJSON(text) }

// Marked returns a text from one source.
func Marked(plain string, o Origin) Text { return object.Marked(plain, o) }

// Mark sets the origin of every string in a value, including keys of mappings, and returns the
// value. It changes lists and mappings in place; no rendering may be using them.
func Mark(v any, o Origin) any { return object.Mark(v, o) }
