package object

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

// Failure carries an error from parser or evaluator to Parse or Render by a panic, as in
// text/template, because nearly every function of an interpreter can fail and templates cannot
// catch errors.
type Failure struct{ Err error }

// Fail panics with a Failure. Parse and Render turn it into an error.
func Fail(format string, args ...any) { panic(Failure{fmt.Errorf(format, args...)}) }

// Caught recovers a failure and stores it in err, after place has added its position. It passes
// other panics on.
func Caught(err *error, place func(error) error) {
	switch p := recover().(type) {
	case nil:
	case Failure:
		*err = place(p.Err)
	default:
		panic(p)
	}
}

const (
	lookEvery    = 256 // steps between two checks of the context, about ten microseconds
	bytesPerStep = 64  // bytes of text that are scanned for one step
	itemBytes    = 16  // size of a list element
	EntryBytes   = 96  // size of an entry of a dict or a scope, including its share of the index
)

// Meter holds the remaining steps and bytes of a rendering. Work is charged before it is done.
type Meter struct {
	Ctx    context.Context
	Limits Limits
	Steps  int
	Bytes  int
	depth  int
	unseen int // steps since the last check of ctx

	Matches map[Origin][]string
}

// Limits of the recorded matches.
const (
	maxMatches = 8   // per origin
	matchBytes = 100 // per match
)

// Found records that the template found the text part, which the template contains, in a text from
// one source.
func (m *Meter) Found(in, part Text) {
	if len(in.Spans) != 1 || len(part.Spans) > 0 || part.Plain == "" || len(part.Plain) > matchBytes {
		return
	}
	o := in.Spans[0].Origin
	if list := m.Matches[o]; len(list) < maxMatches && !slices.Contains(list, part.Plain) {
		if m.Matches == nil {
			m.Matches = map[Origin][]string{}
		}
		m.Matches[o] = append(list, part.Plain)
	}
}

func (m *Meter) stop(format string, args ...any) {
	panic(Failure{&LimitError{fmt.Sprintf(format, args...)}})
}

// Spend charges steps. It fails if the rendering has used all of them or ctx has ended.
func (m *Meter) Spend(steps int) {
	if m.Steps -= steps; m.Steps < 0 {
		m.stop("the template takes more than %d steps", m.Limits.Steps)
	}
	if m.unseen += steps; m.unseen >= lookEvery {
		m.unseen = 0
		if m.Ctx.Err() != nil {
			panic(Failure{context.Cause(m.Ctx)})
		}
	}
}

// Take charges bytes of memory.
func (m *Meter) Take(bytes int) {
	if m.Bytes -= bytes; m.Bytes < 0 {
		m.stop("the values of the template take more than %d bytes", m.Limits.Bytes)
	}
}

// Scan charges the steps for reading n bytes of text.
func (m *Meter) Scan(n int) { m.Spend(1 + n/bytesPerStep) }

// Text charges a string of n bytes. It must be called before the string is created.
func (m *Meter) Text(n int) {
	if n < 0 || n > m.Limits.Text {
		m.stop("the template creates a text of more than %d bytes", m.Limits.Text)
	}
	m.Scan(n)
	m.Take(n)
}

// Items charges a list of n elements. It must be called before the list is created.
func (m *Meter) Items(n int) {
	if n < 0 || n > m.Limits.Bytes/itemBytes {
		m.stop("the template creates a list of more than %d elements", m.Limits.Bytes/itemBytes)
	}
	m.Spend(1 + n)
	m.Take(n * itemBytes)
}

// Enter starts a nested call or value and fails beyond the depth limit; Leave ends it.
func (m *Meter) Enter() {
	if m.depth++; m.depth > m.Limits.Depth {
		m.stop("the template nests more than %d levels deep", m.Limits.Depth)
	}
}

// Leave ends a nested call or value.
func (m *Meter) Leave() { m.depth-- }
