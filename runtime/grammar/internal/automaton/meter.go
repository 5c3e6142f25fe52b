package automaton

import (
	"cmp"
	"context"
	"strconv"
)

// Default limits of one compilation. They count bytes and steps instead of time, so that the result
// does not depend on the load of the machine.
const (
	DefaultBytes = 24 << 20
	DefaultWork  = 24 << 20
)

// Costs in bytes of the parts of a compilation: a value of the schema, a part of an expression, a
// state of the automata, an edge that reads a byte, an edge that reads none, and a map entry.
// Passes over all states account for their own memory while they run (scratch).
const (
	ValueCost = 80
	PartCost  = 80
	stateCost = 112
	edgeCost  = 20
	wayCost   = 12
	EntryCost = 64
)

// PollWork is the work between two checks of the context, about a millisecond.
const PollWork = 1 << 16

// Meter counts the memory and the work of compiling a grammar. It ends the compilation if a limit
// is exceeded or its context ends. A meter may compile several grammars one after another: each has
// the whole memory, and all share the work. It must not be used concurrently.
//
// Inside the package, exceeding a limit panics with an *Error, so that no caller mistakes it for an
// unsupported keyword. The functions that start a compilation recover it.
type Meter struct {
	ctx               context.Context
	maxBytes, maxWork int64
	Used              int64 // current bytes
	Peak              int64 // largest value of used
	Done              int64 // work so far
	polled            int64 // work at the last check of ctx
}

// NewMeter returns a meter for compilations that end when ctx ends. Limits of 0 mean the defaults.
func NewMeter(ctx context.Context, bytes, work int64) *Meter {
	return &Meter{ctx: ctx, maxBytes: cmp.Or(bytes, DefaultBytes), maxWork: cmp.Or(work, DefaultWork)}
}

// Begin starts another compilation with no memory in use.
func (m *Meter) Begin() { m.Used = 0 }

// Take counts n bytes in use, and the work of filling them.
func (m *Meter) Take(n int) {
	m.Used += int64(n)
	m.Peak = max(m.Peak, m.Used)
	if m.Used > m.maxBytes {
		panic(&Error{Limit: true, Message: "the schema or grammar and its automata need more than the limit of " +
			sizeText(m.maxBytes)})
	}
	m.Work(n/16 + 1)
}

// Give releases n bytes.
func (m *Meter) Give(n int) { m.Used -= int64(n) }

// Work counts n elementary steps.
func (m *Meter) Work(n int) {
	m.Done += int64(n)
	if m.Done > m.maxWork {
		panic(&Error{Limit: true, Message: "compiling the schema or grammar needs more than the limit of " +
			strconv.Itoa(int(m.maxWork/1e6)) + " million steps"})
	}
	if m.Done-m.polled >= PollWork {
		m.polled = m.Done
		if err := m.ctx.Err(); err != nil {
			panic(&Error{Limit: true, Message: "the compilation was canceled", cause: err})
		}
	}
}

// scratch counts n bytes that are in use while f runs.
func (m *Meter) scratch(n int, f func()) {
	m.Take(n)
	f()
	m.Give(n)
}

// Guard calls f and returns its error, or the *Error with which f panicked. If that has no path,
// guard sets it to the result of where.
func Guard(f func() error, where func() string) (err error) {
	defer func() {
		over := recover()
		if over == nil {
			return
		}
		e, ok := over.(*Error)
		if !ok {
			panic(over)
		}
		if e.Path == "" && where != nil {
			e.Path = where()
		}
		err = e
	}()
	return f()
}

// Refusal returns the *Error that a panic carried, given the result of recover, or nil if there was
// no panic. It panics again with any other value, and with an *Error that reports an exceeded
// limit, because that ends the compilation.
func Refusal(over any) *Error {
	if over == nil {
		return nil
	}
	e, ok := over.(*Error)
	if !ok || e.Limit {
		panic(over)
	}
	return e
}

func sizeText(n int64) string {
	if n >= 1<<20 {
		return strconv.Itoa(int(n>>20)) + " MiB"
	}
	return strconv.Itoa(int(n>>10)) + " KiB"
}
