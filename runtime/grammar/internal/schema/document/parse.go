package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// maxDepth is the largest nesting depth of a schema, and maxSchema its largest length in bytes.
const (
	maxDepth  = 256
	maxSchema = 4 << 20
)

// parseValue parses a text that contains exactly one JSON value.
func parseValue(text []byte, m *automaton.Meter) (*Value, error) {
	if len(text) > maxSchema {
		return nil, automaton.Refuse("#", "the schema has %d bytes; at most %d MiB are accepted", len(text),
			maxSchema>>20)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	r := reader{Decoder: d, meter: m, scalars: map[scalar]*Value{}, names: map[string]string{}}
	var v *Value
	err := automaton.Guard(func() (err error) {
		v, err = r.value()
		return err
	}, func() string { return Show(r.path()) })
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, automaton.Refuse("", "not valid JSON: unexpected text after the schema")
	}
	return v, nil
}

// reader parses JSON values. It shares equal scalars, because large schemas repeat them.
type reader struct {
	*json.Decoder
	meter   *automaton.Meter
	at      []string // names and indices of the path to the current value
	scalars map[scalar]*Value
	names   map[string]string // names of members, shared
}

// scalar identifies a value that is neither an array nor an object.
type scalar struct {
	kind byte
	text string
}

// path returns the JSON pointer of the current value.
func (d *reader) path() string {
	var b strings.Builder
	for _, name := range d.at {
		b.WriteString("/" + EscapePointer(name))
	}
	return b.String()
}

// value reads the next value.
func (d *reader) value() (*Value, error) {
	if len(d.at) > maxDepth {
		return nil, automaton.Refuse(Show(d.path()), "the schema is nested more than %d levels deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, d.badJSON(err)
	}
	switch t := t.(type) {
	case nil:
		return d.scalar(KindNull, "null"), nil
	case bool:
		return d.scalar(KindBool, strconv.FormatBool(t)), nil
	case json.Number:
		return d.scalar(KindNumber, t.String()), nil
	case string:
		return d.scalar(KindString, t), nil
	case json.Delim:
		d.meter.Take(automaton.ValueCost)
		if t == '[' {
			return d.array()
		}
		return d.object()
	}
	return nil, automaton.Refuse(Show(d.path()), "not valid JSON")
}

// scalar returns the shared value with a kind and a text.
func (d *reader) scalar(kind byte, text string) *Value {
	key := scalar{kind, text}
	v := d.scalars[key]
	if v == nil {
		d.meter.Take(automaton.ValueCost + automaton.EntryCost + len(text))
		v = &Value{Kind: kind, Text: text}
		d.scalars[key] = v
	}
	return v
}

func (d *reader) badJSON(err error) error {
	if errors.Is(err, io.EOF) {
		return automaton.Refuse(Show(d.path()), "not valid JSON: unexpected end of the text")
	}
	return automaton.Refuse(Show(d.path()), "not valid JSON: %v", err)
}

// array reads the items of an array after its bracket.
func (d *reader) array() (*Value, error) {
	v := &Value{Kind: KindArray}
	for d.More() {
		d.at = append(d.at, strconv.Itoa(len(v.List)))
		x, err := d.value()
		if err != nil {
			return nil, err
		}
		d.at = d.at[:len(d.at)-1]
		d.meter.Take(12)
		v.List = append(v.List, x)
	}
	if _, err := d.Token(); err != nil {
		return nil, d.badJSON(err)
	}
	return v, nil
}

// object reads the members of an object after its brace.
func (d *reader) object() (*Value, error) {
	v := &Value{Kind: KindObject}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, automaton.Refuse(Show(d.path()), "not valid JSON: %v", err)
		}
		name = d.name(name)
		d.at = append(d.at, name)
		if seen[name] {
			return nil, automaton.Refuse(Show(d.path()), "duplicate member")
		}
		seen[name] = true
		x, err := d.value()
		if err != nil {
			return nil, err
		}
		d.at = d.at[:len(d.at)-1]
		d.meter.Take(28)
		v.Members = append(v.Members, Member{name, x})
	}
	if _, err := d.Token(); err != nil {
		return nil, d.badJSON(err)
	}
	v.Members = slices.Clone(v.Members)
	return v, nil
}

// name returns a shared copy of a member's name.
func (d *reader) name(text string) string {
	name, met := d.names[text]
	if !met {
		d.meter.Take(automaton.EntryCost + len(text))
		d.names[text], name = text, text
	}
	return name
}
