package grammar

import (
	"cmp"
	"context"
	"strconv"
)

// Default limits of one compilation. They count bytes and steps instead of time, so that the result
// does not depend on the load of the machine.
const (
	defaultBytes = 24 << 20
	defaultWork  = 24 << 20
)

// Costs in bytes of the parts of a compilation: a value of the schema, a part of an expression, a
// state of the automata, an edge that reads a byte, an edge that reads none, and a map entry.
// Passes over all states account for their own memory while they run (scratch).
const (
	valueCost = 80
	partCost  = 80
	stateCost = 112
	edgeCost  = 20
	wayCost   = 12
	entryCost = 64
)

// pollWork is the work between two checks of the context, about a millisecond.
const pollWork = 1 << 16

// meter counts the memory and the work of compiling a grammar. It ends the compilation if a limit
// is exceeded or its context ends. A meter may compile several grammars one after another: each has
// the whole memory, and all share the work. It must not be used concurrently.
//
// Inside the package, exceeding a limit panics with an *Error, so that no caller mistakes it for an
// unsupported keyword. The functions that start a compilation recover it.
type meter struct {
	ctx                 context.Context
	mostBytes, mostWork int64
	used                int64 // current bytes
	peak                int64 // largest value of used
	done                int64 // work so far
	polled              int64 // work at the last check of ctx
}

// newMeter returns a meter for compilations that end when ctx ends. Limits of 0 mean the defaults.
func newMeter(ctx context.Context, bytes, work int64) *meter {
	return &meter{ctx: ctx, mostBytes: cmp.Or(bytes, defaultBytes), mostWork: cmp.Or(work, defaultWork)}
}

// begin starts another compilation with no memory in use.
func (m *meter) begin() { m.used = 0 }

// take counts n bytes in use, and the work of filling them.
func (m *meter) take(n int) {
	m.used += int64(n)
	m.peak = max(m.peak, m.used)
	if m.used > m.mostBytes {
		panic(&Error{limit: true, Message: "the schema or grammar and its automata need more than the limit of " +
			sizeText(m.mostBytes)})
	}
	m.work(n/16 + 1)
}

// give releases n bytes.
func (m *meter) give(n int) { m.used -= int64(n) }

// work counts n elementary steps.
func (m *meter) work(n int) {
	m.done += int64(n)
	if m.done > m.mostWork {
		panic(&Error{limit: true, Message: "compiling the schema or grammar needs more than the limit of " +
			strconv.Itoa(int(m.mostWork>>20)) + " million steps"})
	}
	if m.done-m.polled >= pollWork {
		m.polled = m.done
		if err := m.ctx.Err(); err != nil {
			panic(&Error{limit: true, Message: "the compilation was canceled", cause: err})
		}
	}
}

// scratch counts n bytes that are in use while f runs.
func (m *meter) scratch(n int, f func()) {
	m.take(n)
	f()
	m.give(n)
}

// guard calls f and returns its error, or the *Error with which f panicked. If that has no path,
// guard sets it to the result of where.
func guard(f func() error, where func() string) (err error) {
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

// refusal returns the *Error of a recovered panic, or nil if there was none. It panics again if a
// limit of the Meter was exceeded, which ends the compilation.
func refusal(over any) *Error {
	if over == nil {
		return nil
	}
	e, ok := over.(*Error)
	if !ok || e.limit {
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
