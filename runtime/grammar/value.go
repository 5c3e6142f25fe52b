package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// value is a JSON value with the members of objects in the order given.
type value struct {
	kind    byte // one of "nbds{[", as kindOf says
	text    string
	list    []*value
	members []member
	index   map[string]int // of the members, where they are many
}

type member struct {
	name  string
	value *value
}

const (
	kindNull   = 'n'
	kindBool   = 'b'
	kindNumber = 'd'
	kindString = 's'
	kindObject = '{'
	kindArray  = '['
)

// maxDepth is how deep a schema may be nested.
const maxDepth = 256

// maxSchema is how long a schema may be: one of so many bytes is read or refused in about a second.
const maxSchema = 4 << 20

// parseValue reads one JSON value and nothing behind it.
func parseValue(text []byte, b *budget) (*value, error) {
	if len(text) > maxSchema {
		return nil, refuse("#", "it takes %d bytes; schemas of %d MiB at most are read", len(text), maxSchema>>20)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	r := reader{d, b}
	v, err := r.value("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("", "something follows the schema")
	}
	return v, nil
}

// reader reads values, which count against the budget of the request.
type reader struct {
	*json.Decoder
	budget *budget
}

func (d *reader) value(path string, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, refuse(path, "it is nested more than %d deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, badJSON(path, err)
	}
	size := int64(valueCost)
	if s, ok := t.(string); ok {
		size += int64(len(s))
	}
	if err := d.budget.take(size); err != nil {
		err.Path = show(path)
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return &value{kind: kindNull, text: "null"}, nil
	case bool:
		return &value{kind: kindBool, text: strconv.FormatBool(t)}, nil
	case json.Number:
		return &value{kind: kindNumber, text: t.String()}, nil
	case string:
		return &value{kind: kindString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return d.array(path, depth)
		}
		return d.object(path, depth)
	}
	return nil, refuse(path, "not valid JSON")
}

func badJSON(path string, err error) error {
	if errors.Is(err, io.EOF) {
		return refuse(path, "not valid JSON: it ends too soon")
	}
	return refuse(path, "not valid JSON: %v", err)
}

func (d *reader) array(path string, depth int) (*value, error) {
	v := &value{kind: kindArray}
	for d.More() {
		x, err := d.value(path+"/"+strconv.Itoa(len(v.list)), depth+1)
		if err != nil {
			return nil, err
		}
		v.list = append(v.list, x)
	}
	if _, err := d.Token(); err != nil {
		return nil, badJSON(path, err)
	}
	return v, nil
}

func (d *reader) object(path string, depth int) (*value, error) {
	v := &value{kind: kindObject}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, refuse(path, "not valid JSON: %v", err)
		}
		at := path + "/" + escapePointer(name)
		if seen[name] {
			return nil, refuse(at, "given twice")
		}
		seen[name] = true
		x, err := d.value(at, depth+1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{name, x})
	}
	if _, err := d.Token(); err != nil {
		return nil, badJSON(path, err)
	}
	return v, nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(name string) string { return pointerEscapes.Replace(name) }

// get is a member of an object; nil where there is none.
func (v *value) get(name string) *value {
	if len(v.members) > 16 {
		if len(v.index) != len(v.members) {
			v.index = make(map[string]int, len(v.members))
			for i, m := range v.members {
				v.index[m.name] = i
			}
		}
		if i, ok := v.index[name]; ok {
			return v.members[i].value
		}
		return nil
	}
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}

// isTrue tells the value true.
func (v *value) isTrue() bool { return v != nil && v.kind == kindBool && v.text == "true" }

// isFalse tells the value false.
func (v *value) isFalse() bool { return v != nil && v.kind == kindBool && v.text == "false" }

// write appends the value as compact JSON: the one spelling in which constants are generated.
func (v *value) write(to []byte) []byte {
	switch v.kind {
	case kindString:
		return appendQuoted(to, v.text)
	case kindArray:
		to = append(to, '[')
		for i, x := range v.list {
			if i > 0 {
				to = append(to, ',')
			}
			to = x.write(to)
		}
		return append(to, ']')
	case kindObject:
		to = append(to, '{')
		for i, m := range v.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendQuoted(to, m.name), ':')
			to = m.value.write(to)
		}
		return append(to, '}')
	}
	return append(to, v.text...)
}

// appendQuoted writes a string with the escapes that it needs and no others.
func appendQuoted(to []byte, s string) []byte {
	to = append(to, '"')
	for _, r := range s {
		to = appendChar(to, r)
	}
	return append(to, '"')
}
