package jinja

import (
	"context"
	"fmt"
	"time"

	"sandwich/runtime/jinja/internal/library"
	"sandwich/runtime/jinja/internal/object"
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
	defer object.Caught(&err, func(err error) error { return err })
	p := &parser{tokens: lex(source)}
	return &Template{p.body()}, nil
}

// Output is the result of a rendering.
type Output struct {
	object.Text
	// Matches lists, by origin, the texts of the template that it searched for in a marked text and
	// found.
	Matches map[object.Origin][]string
}

// Render runs the template with the given variables and time. It returns the cause of ctx soon
// after ctx ends, a *LimitError if the template exceeds a limit, and a *RaisedError if it calls
// raise_exception.
func (t *Template) Render(ctx context.Context, vars *object.Dict, now time.Time, limits object.Limits) (o Output,
	err error) {
	late := &object.LimitError{What: fmt.Sprintf("the template takes more than %v", limits.Time)}
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, late)
	defer cancel()
	r := &library.Run{Now: now, Meter: object.Meter{Ctx: ctx, Limits: limits, Steps: limits.Steps, Bytes: limits.Bytes}}
	defer object.Caught(&err, r.Place)
	f := &frame{Run: r, scope: &scope{}, out: &object.Builder{Meter: &r.Meter}}
	for _, e := range vars.Entries {
		if name, ok := object.Plain(e.Key); ok {
			f.assign(f.scope, name, e.Value)
		}
	}
	f.exec(t.body)
	return Output{f.out.Text(), r.Matches}, nil
}
