package tables

import "context"

// Work is the progress of encoding one text: it ends when the context ends or when there are more
// tokens than the caller needs.
type Work struct {
	heap []uint64 // candidates of mergeLong; the memory is reused

	done    <-chan struct{}
	limit   int  // tokens; 0 for none
	symbols int  // symbols since done was last polled
	Ended   bool // the caller does not need further tokens
}

// Begin starts a text with a limit of tokens; 0 means no limit.
func (w *Work) Begin(ctx context.Context, limit int) {
	w.done, w.limit, w.symbols, w.Ended = ctx.Done(), limit, 0, false
}

// Finish releases the context, so that the memory can be kept for another text.
func (w *Work) Finish() { w.done = nil }

// Made adds n symbols of work and ends encoding if the number of tokens exceeds the limit.
func (w *Work) Made(n, tokens int) {
	if w.limit > 0 && tokens > w.limit {
		w.Ended = true
	}
	w.Poll(n)
}

// Poll adds n symbols of work and reports whether encoding must stop now.
func (w *Work) Poll(n int) bool {
	if w.symbols += n; w.symbols >= pollEvery {
		w.symbols = 0
		select {
		case <-w.done:
			w.Ended = true
		default:
		}
	}
	return w.Ended
}

// pollEvery is the number of symbols between two checks of the context, about a millisecond of
// work.
const pollEvery = 1 << 13
