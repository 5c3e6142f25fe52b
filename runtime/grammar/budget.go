package grammar

// budget bounds what one grammar may take. It counts bytes and not time, so that what is refused
// does not depend on who else is served.
type budget struct{ left int64 }

// programBytes is how much a program may take, and stateBytes how much the states that a Matcher
// keeps; together with the masks of all answers (shelf) they stay below 256 MiB. The largest
// program is written in about a second.
const (
	programBytes = 96 << 20
	stateBytes   = 96 << 20
)

func newBudget() *budget { return &budget{left: programBytes} }

func (b *budget) take(n int64) *Error {
	if b.left -= n; b.left < 0 {
		return refuse("", "it is too large: its automata exceed %d MiB", programBytes>>20)
	}
	return nil
}
