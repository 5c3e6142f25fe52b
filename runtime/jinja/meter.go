package jinja

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Limits bound one rendering. All are needed; a limit of 0 allows nothing.
type Limits struct {
	Time  time.Duration
	Steps int // expressions evaluated, elements accessed, and 64-byte units of text scanned
	Bytes int // total size of all values created, including those that are no longer used
	Text  int // size in bytes of one string and of the output
	Depth int // nesting of calls and of values
}

// LimitError reports the limit that a template exceeded.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return e.What }

// RaisedError is the message of a call of raise_exception.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// failure carries an error from parser or evaluator to Parse or Render by a panic, as in
// text/template, because nearly every function of an interpreter can fail and templates cannot
// catch errors.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// caught recovers a failure and stores it in err, after place has added its position. It passes
// other panics on.
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
	lookEvery    = 256 // steps between two checks of the context, about ten microseconds
	bytesPerStep = 64  // bytes of text that are scanned for one step
	itemBytes    = 16  // size of a list element
	entryBytes   = 96  // size of an entry of a dict or a scope, including its share of the index
)

// meter holds the remaining steps and bytes of a rendering. Work is charged before it is done.
type meter struct {
	ctx    context.Context
	limits Limits
	steps  int
	bytes  int
	depth  int
	unseen int // steps since the last check of ctx

	matches map[Origin][]string
}

// Limits of the recorded matches.
const (
	maxMatches = 8   // per origin
	matchBytes = 100 // per match
)

// found records that the template found the text part, which the template contains, in a text from
// one source.
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

// spend charges steps. It fails if the rendering has used all of them or ctx has ended.
func (m *meter) spend(steps int) {
	if m.steps -= steps; m.steps < 0 {
		m.stop("the template takes more than %d steps", m.limits.Steps)
	}
	if m.unseen += steps; m.unseen >= lookEvery {
		m.unseen = 0
		if m.ctx.Err() != nil {
			panic(failure{context.Cause(m.ctx)})
		}
	}
}

// take charges bytes of memory.
func (m *meter) take(bytes int) {
	if m.bytes -= bytes; m.bytes < 0 {
		m.stop("the values of the template take more than %d bytes", m.limits.Bytes)
	}
}

// scan charges the steps for reading n bytes of text.
func (m *meter) scan(n int) { m.spend(1 + n/bytesPerStep) }

// text charges a string of n bytes. It must be called before the string is created.
func (m *meter) text(n int) {
	if n < 0 || n > m.limits.Text {
		m.stop("the template creates a text of more than %d bytes", m.limits.Text)
	}
	m.scan(n)
	m.take(n)
}

// items charges a list of n elements. It must be called before the list is created.
func (m *meter) items(n int) {
	if n < 0 || n > m.limits.Bytes/itemBytes {
		m.stop("the template creates a list of more than %d elements", m.limits.Bytes/itemBytes)
	}
	m.spend(1 + n)
	m.take(n * itemBytes)
}

// enter starts a nested call or value and fails beyond the depth limit; leave ends it.
func (m *meter) enter() {
	if m.depth++; m.depth > m.limits.Depth {
		m.stop("the template nests more than %d levels deep", m.limits.Depth)
	}
}

func (m *meter) leave() { m.depth-- }
