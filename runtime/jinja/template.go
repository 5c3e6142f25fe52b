package jinja

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxSource is the largest size of a template in bytes. The largest in use have 17 KB.
const maxSource = 128 << 10

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []statement }

// Parse parses a template. Errors name the line.
func Parse(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes, more than the limit of %d", len(source), maxSource)
	}
	defer caught(&err, func(err error) error { return err })
	p := &parser{tokens: lex(source)}
	return &Template{p.body()}, nil
}

// run is the state of one rendering.
type run struct {
	meter
	now  time.Time // for strftime_now
	line int       // line of the current statement, for errors
}

// Output is the result of a rendering.
type Output struct {
	Text
	// Matches lists, by origin, the texts of the template that it searched for in a marked text and
	// found.
	Matches map[Origin][]string
}

// Render runs the template with the given variables and time. It returns the cause of ctx soon
// after ctx ends, a *LimitError if the template exceeds a limit, and a *RaisedError if it calls
// raise_exception.
func (t *Template) Render(ctx context.Context, vars *Dict, now time.Time, limits Limits) (o Output, err error) {
	late := &LimitError{fmt.Sprintf("the template takes more than %v", limits.Time)}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, late)
	defer cancel()
	r := &run{now: now, meter: meter{ctx: ctx, limits: limits, steps: limits.Steps, bytes: limits.Bytes}}
	defer caught(&err, r.place)
	root := &scope{}
	for _, e := range vars.entries {
		if name, ok := plain(e.key); ok {
			r.assign(root, name, e.value)
		}
	}
	out := &builder{m: &r.meter}
	(&frame{run: r, scope: root, out: out}).exec(t.body)
	return Output{out.text(), r.matches}, nil
}

// place adds the current line to an error, unless the template raised it or ctx ended.
func (r *run) place(err error) error {
	var raised *RaisedError
	if errors.As(err, &raised) || r.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("line %d: %w", r.line, err)
}
