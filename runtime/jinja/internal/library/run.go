// Package library holds the filters, tests, methods and functions that templates use.
package library

import (
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/jinja/internal/object"
)

// Run is the state of one rendering.
type Run struct {
	object.Meter
	Now  time.Time // for strftime_now
	Line int       // line of the current statement, for errors
}

// Place adds the current line to an error, unless the template raised it or ctx ended.
func (r *Run) Place(err error) error {
	var raised *object.RaisedError
	if errors.As(err, &raised) || r.Ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("line %d: %w", r.Line, err)
}
