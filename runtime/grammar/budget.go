package grammar

// budget bounds what one grammar may take. It counts bytes and not time, so that what is refused
// does not depend on who else is served.
type budget struct{ left int64 }

// A request takes 256 MiB at most: compileBytes while its grammar is compiled, of which the program
// stays; behind that what the shelf keeps of masks, stateBytes for the states of all answers that
// run at once, and sliceBytes for the vocabulary's parts. The largest program is written in about a
// second.
const (
	compileBytes = 96 << 20
	stateBytes   = 64 << 20
	shelfBytes   = 32 << 20
	sliceBytes   = 64 << 20
)

// What is counted for a part of a schema, a state of a program, a way out of it that reads a byte,
// and one that does not: with what measuring and packing take of it.
const (
	valueCost = 128
	stateCost = 136
	edgeCost  = 24
	wayCost   = 12
)

func newBudget() *budget { return &budget{left: compileBytes} }

func (b *budget) take(n int64) *Error {
	if b.left -= n; b.left < 0 {
		return refuse("", "it is too large: it and its automata exceed %d MiB", compileBytes>>20)
	}
	return nil
}

// give returns what is no longer needed.
func (b *budget) give(n int64) { b.left += n }
