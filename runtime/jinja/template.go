package jinja

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxSource bounds a template's source. The largest in use have 17 KB.
const maxSource = 128 << 10

// Template is a parsed template, safe for concurrent use.
type Template struct{ body []statement }

// Parse reads a template.
func Parse(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(source), maxSource)
	}
	defer caught(&err, func(err error) error { return err })
	p := &parser{tokens: lex(source)}
	return &Template{p.body()}, nil
}

// run is one rendering.
type run struct {
	meter
	now  time.Time // for strftime_now
	line int       // of the statement at work, for errors
}

// Output is what a template wrote.
type Output struct {
	Text
	// Matches has, by origin, texts of the template that it looked for in a marked text and found.
	Matches map[Origin][]string
}

// Render runs the template over variables. It ends soon after ctx does, with its cause.
func (t *Template) Render(ctx context.Context, vars *Dict, now time.Time, limits Limits) (o Output, err error) {
	late := &LimitError{fmt.Sprintf("it takes more than %v", limits.Time)}
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

// place adds the line to errors that are about one.
func (r *run) place(err error) error {
	var raised *RaisedError
	if errors.As(err, &raised) || r.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("line %d: %w", r.line, err)
}
