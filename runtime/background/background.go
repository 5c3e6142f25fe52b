// Package background divides background work, such as the load of a model, into pieces. Between two
// pieces other users get the cores if they wait for them.
package background

// Turns gives the cores to other users between parts of the work. Workers call Preempted
// concurrently; a part ends soon after it returns true.
type Turns interface {
	Acquire()
	Release()
	Preempted() bool
}

// Run calls piece, which does a piece of the work and reports whether there is more, until it
// returns false. Other users may get the cores between two calls. A piece should take at most about
// a millisecond. nil is a Run without other users.
type Run func(piece func() (more bool))

// In returns a Run that does each piece with the cores. t may be nil.
func In(t Turns) Run {
	if t == nil {
		return nil
	}
	return func(piece func() bool) {
		t.Acquire()
		defer t.Release()
		for piece() {
			if t.Preempted() {
				t.Release()
				t.Acquire()
			}
		}
	}
}

// Do does work in pieces until piece returns false.
func (r Run) Do(piece func() (more bool)) {
	if r != nil {
		r(piece)
		return
	}
	for piece() {
	}
}

// Once does work that is one piece.
func (r Run) Once(f func()) {
	r.Do(func() bool {
		f()
		return false
	})
}
