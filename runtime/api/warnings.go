package api

import (
	"fmt"
	"slices"
	"sync"
)

// Limits of the warnings of one request.
const (
	maxWarnings     = 32
	maxWarningBytes = 300
)

// Warnings collects what was left out of a request, moved or replaced, to be reported to its
// client. Methods may be called concurrently, and on a nil *Warnings, which discards all.
type Warnings struct {
	mu   sync.Mutex
	list []string
	more int // warnings beyond maxWarnings
}

// Add records a warning that starts with the field, like an InvalidError: "messages[2].content[1]:
// an image was left out; only text is supported". It escapes control characters, cuts long texts
// and drops repetitions.
func (w *Warnings) Add(format string, args ...any) {
	if w == nil {
		return
	}
	text := Printable(fmt.Sprintf(format, args...), "")
	if len(text) > maxWarningBytes {
		text = Printable(text[:maxWarningBytes], "") + "..."
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case slices.Contains(w.list, text):
	case len(w.list) == maxWarnings:
		w.more++
	default:
		w.list = append(w.list, text)
	}
}

// List returns the warnings in the order of Add. If there were too many, the last entry is the
// number of those missing.
func (w *Warnings) List() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.list)
	if w.more > 0 {
		list = append(list, fmt.Sprintf("%d more warnings are not listed", w.more))
	}
	return list
}
