package tp

import (
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// A worker that may lose its CPU computes a chunk into its private buffer, and copies the results
// to their place after it has committed the chunk. Meanwhile others may reclaim the chunk and
// overwrite its inputs. The worker then computes wrong numbers, which it discards; addresses and
// sizes never come from memory that others overwrite.

// MostPrivate bounds the private buffer of a worker in bytes. Larger chunks are computed in place,
// and the others wait for them.
const MostPrivate = 4 << 20

// Offer and Commit enclose the computation of a chunk into a private buffer. Under the race
// detector, which would report the reads of inputs that others overwrite, a chunk is offered after
// it has been computed.
func Offer(w *pool.Worker) {
	if !RaceEnabled {
		w.Offer()
	}
}

// Commit ends what Offer began. It does not return if others have reclaimed the chunk.
func Commit(w *pool.Worker) {
	if RaceEnabled {
		w.Offer()
	}
	w.Commit()
}

// Private reports whether the worker must compute a chunk with results of so many bytes into its
// private buffer. It is false if they do not fit.
func (g *Group) Private(bytes int) bool { return g.W.Private() && bytes <= g.Scratch.PrivateBytes }

// Window is n elements of each of some rows.
type Window struct {
	At        *float32
	Stride, N int
}

// Row returns the address of a row of the window.
func (v *Window) Row(r int) *float32 { return raw.Add(v.At, r*v.Stride) }

// Window returns n elements of the rows of a buffer, from element `first` of a row on.
func (g *Group) Window(buf model.Buf, row, first, n int) Window {
	return Window{raw.Add(g.Row(buf, row), first), g.Acts.Stride[buf], n}
}

// PrivateWindows reports whether a chunk that changes some rows of windows in place must be
// computed into the private buffer.
func (g *Group) PrivateWindows(rows int, list []Window) bool {
	elements := 0
	for i := range list {
		elements += rows * list[i].N
	}
	return g.Private(4 * elements)
}

// TakeWindows copies windows to the private buffer and replaces them by their copies.
func (g *Group) TakeWindows(rows int, list []Window) {
	own := (*float32)(g.Scratch.Private)
	for i := range list {
		v := &list[i]
		raw.CopyRows(own, v.N, v.At, v.Stride, rows, v.N)
		v.At, v.Stride = own, v.N
		own = raw.Add(own, rows*v.N)
	}
}

// CopyWindows copies windows back to where TakeWindows took them from.
func CopyWindows(to, from []Window, rows int) {
	for i := range to {
		raw.CopyRows(to[i].At, to[i].Stride, from[i].At, from[i].Stride, rows, to[i].N)
	}
}
