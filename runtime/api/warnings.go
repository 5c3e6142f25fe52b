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

// Warnings collects the parts of a request that were left out, moved or replaced, for the client
// that sent it. Its methods may be called concurrently, and on a nil *Warnings, which discards.
type Warnings struct {
	mu   sync.Mutex
	list []string
	more int // warnings beyond maxWarnings
}

// Add records one warning. It names the field first, as an InvalidError does:
// "messages[2].content[1]: an image was left out; only text is supported". Characters that a
// terminal would obey are escaped, long texts are cut, and a warning is listed once.
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

// List returns the warnings in the order in which they were added. Where there were too many, the
// last entry counts those that are missing.
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
