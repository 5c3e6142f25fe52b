package grammar

import "context"

// Limits bound the compilation of one grammar. A zero field takes its default.
type Limits struct {
	Bytes int64 // memory in use at one time
	Work  int64 // elementary steps, 10 to 20 ns of one CPU each
	// Memory bounds what is kept for answers under the grammar; nil: a Memory of its own.
	Memory *Memory
}

// Default limits of one compilation. They count memory and steps and no time, so that what is
// refused does not depend on the load of the machine.
const (
	defaultBytes = 24 << 20
	defaultWork  = 24 << 20
)

// Costs in bytes of the parts of a compilation: a value of the schema, a part of an expression, a
// state of the automata, an edge that reads a byte and one that reads none, an entry of a map. What
// the passes over all states take for themselves is counted while they run (scratch).
const (
	valueCost = 80
	partCost  = 80
	stateCost = 112
	edgeCost  = 20
	wayCost   = 12
	entryCost = 64
)

// pollWork is the work between two looks at the context: about a millisecond.
const pollWork = 1 << 16

// Meter counts the memory and the work of compiling a grammar, as the compiler goes, and ends the
// compilation where a limit is exceeded or its context ends. A Meter may compile several grammars
// one after the other: each has the whole memory, and all of them share the work. It must not be
// used concurrently.
//
// Inside of the package an exceeded limit is a panic with an *Error, so that no caller takes it for
// a keyword that is not supported; the functions that begin a compilation recover it.
type Meter struct {
	ctx    context.Context
	limits Limits
	used   int64 // bytes at present
	peak   int64 // bytes at most
	done   int64 // work
	polled int64 // work when ctx was looked at
}

// NewMeter returns a Meter for compilations that end when ctx does.
func NewMeter(ctx context.Context, l Limits) *Meter {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Work == 0 {
		l.Work = defaultWork
	}
	return &Meter{ctx: ctx, limits: l}
}

// begin starts another compilation, which finds all of the memory free.
func (m *Meter) begin() { m.used = 0 }

// take counts n bytes that are in use from now on, and the work of filling them.
func (m *Meter) take(n int) {
	m.used += int64(n)
	m.peak = max(m.peak, m.used)
	if m.used > m.limits.Bytes {
		panic(&Error{limit: true, Message: "the schema or grammar and its automata take more than the limit of " +
			sizeText(m.limits.Bytes)})
	}
	m.work(n/16 + 1)
}

// give returns bytes that are no longer in use.
func (m *Meter) give(n int) { m.used -= int64(n) }

// work counts n elementary steps.
func (m *Meter) work(n int) {
	m.done += int64(n)
	if m.done > m.limits.Work {
		panic(&Error{limit: true, Message: "compiling the schema or grammar takes more than the limit of " +
			itoa(int(m.limits.Work>>20)) + " million steps"})
	}
	if m.done-m.polled >= pollWork {
		m.polled = m.done
		if err := m.ctx.Err(); err != nil {
			panic(&Error{limit: true, Message: "the compilation was canceled", cause: err})
		}
	}
}

// scratch counts memory that is in use while f runs.
func (m *Meter) scratch(n int, f func()) {
	m.take(n)
	f()
	m.give(n)
}

// guard calls f and returns its error, or the *Error with which it panicked. Errors without a path
// get that of where.
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

// refusal returns the *Error of a recovered panic, nil where there was none. It panics again where
// a limit of the Meter is exceeded, which ends the compilation.
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
		return itoa(int(n>>20)) + " MiB"
	}
	return itoa(int(n>>10)) + " KiB"
}
