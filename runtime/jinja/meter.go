package jinja

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Limits bound one rendering.
type Limits struct {
	Time  time.Duration
	Steps int // expressions evaluated, elements touched, pieces of text scanned
	Bytes int // of all values made, together: what a template dropped is not given back
	Text  int // bytes of one string, and of the result
	Depth int // calls inside calls, values inside values
}

// LimitError says which limit a template ran into.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return e.What }

// RaisedError is what the template refused by raise_exception.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// failure carries an error out of the depths of parser and evaluator, as in text/template: nearly
// every function of an interpreter can fail, and a template cannot catch anything. Parse and Render
// turn it back into an error.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// caught recovers a failure into err. Any other panic is a fault of this package and goes on.
func caught(err *error, place func(error) error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = place(p.err)
	default:
		panic(p)
	}
}

const (
	lookEvery    = 256 // steps between two looks at the context: some ten microseconds
	bytesPerStep = 64  // text scanned at the price of one step
	itemBytes    = 16  // an element of a list
	entryBytes   = 96  // an entry of a dict or a scope, with its share of the index
)

// meter is what a rendering may still spend. Nothing is evaluated, copied or scanned past it.
type meter struct {
	ctx    context.Context
	limits Limits
	steps  int
	bytes  int
	depth  int
	unseen int // steps since the last look at ctx

	matches map[Origin][]string
}

// Limits of the matches that are kept.
const (
	maxMatches = 8   // of one origin
	matchBytes = 100 // of one match
)

// found records that the template found a text of its own in a text of one source.
func (m *meter) found(in, part Text) {
	if len(in.Spans) != 1 || len(part.Spans) > 0 || part.Plain == "" || len(part.Plain) > matchBytes {
		return
	}
	o := in.Spans[0].Origin
	if list := m.matches[o]; len(list) < maxMatches && !slices.Contains(list, part.Plain) {
		if m.matches == nil {
			m.matches = map[Origin][]string{}
		}
		m.matches[o] = append(list, part.Plain)
	}
}

func (m *meter) stop(format string, args ...any) {
	panic(failure{&LimitError{fmt.Sprintf(format, args...)}})
}

// spend pays for work.
func (m *meter) spend(steps int) {
	if m.steps -= steps; m.steps < 0 {
		m.stop("it takes more than %d steps", m.limits.Steps)
	}
	if m.unseen += steps; m.unseen >= lookEvery {
		m.unseen = 0
		if m.ctx.Err() != nil {
			panic(failure{context.Cause(m.ctx)})
		}
	}
}

// take pays for memory.
func (m *meter) take(bytes int) {
	if m.bytes -= bytes; m.bytes < 0 {
		m.stop("its values take more than %d bytes", m.limits.Bytes)
	}
}

// scan pays for reading n bytes of text.
func (m *meter) scan(n int) { m.spend(1 + n/bytesPerStep) }

// text pays for a string of n bytes, before it is made.
func (m *meter) text(n int) {
	if n < 0 || n > m.limits.Text {
		m.stop("it makes a text of more than %d bytes", m.limits.Text)
	}
	m.scan(n)
	m.take(n)
}

// items pays for a list of n elements, before it is made.
func (m *meter) items(n int) {
	if n < 0 || n > m.limits.Bytes/itemBytes {
		m.stop("it makes a list of more than %d elements", m.limits.Bytes/itemBytes)
	}
	m.spend(1 + n)
	m.take(n * itemBytes)
}

// enter and leave bound recursion.
func (m *meter) enter() {
	if m.depth++; m.depth > m.limits.Depth {
		m.stop("it nests more than %d deep", m.limits.Depth)
	}
}

func (m *meter) leave() { m.depth-- }
