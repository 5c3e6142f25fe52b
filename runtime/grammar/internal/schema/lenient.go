package schema

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// maxRelaxed is the largest number of keywords that are left out of a schema.
const maxRelaxed = 64

// NewSchema returns a Schema. If note is nil, unsupported keywords are errors. Otherwise they are
// left out and all others are kept: note is called with the path and the reason of each. It may be
// called several times for the same path.
func NewSchema(text []byte, note func(path, reason string)) *Schema {
	return &Schema{text: text, note: note, left: maxRelaxed}
}

// Matching returns the piece with the JSON texts that a part of the schema allows. path is a JSON
// pointer; the empty one is the whole schema. If keywords may be left out, a missing part allows
// everything.
func (s *Schema) Matching(path string) func(*automaton.Builder) (automaton.Expr, error) {
	return func(b *automaton.Builder) (automaton.Expr, error) {
		if err := s.read(b); err != nil {
			return nil, s.own(err)
		}
		if _, err := s.of.find(path); err != nil && s.note != nil {
			return b.AnyValue(), nil
		}
		e, err := s.of.rules(path)
		if err != nil {
			return nil, s.own(s.of.where(err))
		}
		if path == "" {
			b.Wholes = append(b.Wholes, automaton.WholeRule{Rule: e.Rule, Refuse: func() error { return s.refuse(b) }})
		}
		return e, nil
	}
}

// refuse returns the error for a schema that no value satisfies, with the path of its smallest
// unsatisfiable part.
func (s *Schema) refuse(b *automaton.Builder) error {
	e := automaton.Unsatisfied("#", "none was found")
	if none := s.of.none; none != nil {
		*e = *none
		e.Path, e.Located = s.of.visible(e.Path), true
	}
	for i := 0; i < len(b.Rules) && b.Diagnosing && !e.Located; i++ {
		r := &b.Rules[i]
		if r.Of == any(s) && len(r.Path) > len(e.Path) && math.IsInf(b.States[r.Start].Dist, 1) {
			e.Path = r.Path
		}
	}
	e.Located = e.Located || b.Diagnosing
	e.Owner = s
	return e
}

// own sets the schema of an error.
func (s *Schema) own(err error) error {
	var e *automaton.Error
	if errors.As(err, &e) {
		e.Owner = s
	}
	return err
}

// Owner returns the Schema that an error refers to, or nil.
func Owner(err error) *Schema {
	var e *automaton.Error
	if errors.As(err, &e) {
		s, _ := e.Owner.(*Schema)
		return s
	}
	return nil
}

// read parses the schema and starts compiling it for a builder.
func (s *Schema) read(b *automaton.Builder) error {
	if s.of != nil && s.of.Builder == b {
		return nil
	}
	if s.root == nil {
		root, err := document.ReadSchema(s.text, b.Meter)
		var e *automaton.Error
		switch {
		case err == nil:
		case s.note == nil || !errors.As(err, &e) || e.Limit:
			return err
		default:
			root = s.free(e.Message)
		}
		s.root = root
	} else {
		b.Meter.Take(2 * len(s.text)) // the parsed schema is still in memory
	}
	s.of = newCompiler(b, s.root)
	s.of.schema = s
	return nil
}

// free reports that the schema is dropped, and returns a schema that allows any object.
func (s *Schema) free(reason string) *document.Value {
	s.left = -1
	s.note("#", reason)
	return document.OfType("object")
}

// Relax leaves out the keyword that an error refers to. It returns false if it cannot. During
// compilation, at is the path of the part being compiled; if linked, the error itself has the path.
func (s *Schema) Relax(err error, at string, linked bool) bool {
	var e *automaton.Error
	if !errors.As(err, &e) || e.Limit || s.note == nil || s.left < 0 || s.left == 0 && !linked {
		return false
	}
	path, ok := strings.CutPrefix(e.Path, "#")
	switch {
	case s.left == 0 || e.None && path == "":
		s.root = s.free(e.Message)
		return true
	case !ok:
		path = at
	}
	s.left--
	if !linked {
		return s.relaxAt(path, path == at, e.Message) || path != at && s.relaxAt(at, true, e.Message)
	}
	for ; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
		v, err := s.of.find(path)
		if err == nil && s.relaxAt(path, v.Kind != document.KindString && v.Kind != document.KindNumber, e.Message) {
			return true
		}
	}
	if !s.relaxAt("", true, e.Message) {
		s.root = s.free(e.Message)
	}
	return true
}

// relaxAt leaves out the keyword at a path, or if whole is set a keyword of the schema at the path.
// It returns false if there is none.
func (s *Schema) relaxAt(path string, whole bool, reason string) bool {
	holder, pointer := s.of.holder(path)
	v, key := weaker(holder, pointer, whole)
	switch v {
	case nil:
		return false
	case removed:
		v = holder.With(pointer[0], nil)
	}
	s.of.replace(path, v)
	merged := strings.HasPrefix(path, "!")
	if key == "" && len(pointer) > 0 {
		key = pointer[len(pointer)-1]
		path = path[:strings.LastIndexByte(path, '/')]
		pointer = pointer[:len(pointer)-1]
	}
	given := s.of.given(path, key, placeOf(holder, pointer))
	if merged && key != "oneOf" {
		s.leave(given)
	}
	s.root = s.of.root
	s.note(given, reason)
	return true
}

// leave leaves out a keyword of the original schema, if it has it, so that it is not merged again.
func (s *Schema) leave(path string) {
	root, pointer := s.of.holder(strings.TrimPrefix(path, "#"))
	switch v, _ := weaker(root, pointer, false); {
	case v == nil || len(pointer) == 0:
	case v == removed:
		s.of.root = root.With(pointer[0], nil)
	default:
		s.of.root = v
	}
}

// placeOf returns the value at a pointer, or nil.
func placeOf(v *document.Value, pointer []string) *document.Value {
	for _, name := range pointer {
		if v == nil {
			return nil
		}
		v = document.Child(v, name)
	}
	return v
}

// given returns the path of a keyword in the original schema. For a merged schema, that is a path
// in one of the schemas that were merged.
func (c *compiler) given(path, key string, in *document.Value) string {
	visible := c.visible(document.Show(path))
	if strings.HasPrefix(path, "!") && in != nil && in.Get(key) != nil {
		from := strings.TrimPrefix(visible, "#")
		if v, err := c.find(from); err == nil {
			if at, ok := c.search(v, key, in.Get(key), 0); ok {
				return visible + at
			}
		}
	}
	if key != "" {
		visible += "/" + document.EscapePointer(key)
	}
	return visible
}

// search finds a keyword in a schema and in the schemas that apply to the same value.
func (c *compiler) search(v *document.Value, key string, x *document.Value, depth int) (path string, ok bool) {
	if v.Kind != document.KindObject || depth > 8 {
		return "", false
	}
	if v.Get(key) == x {
		return "/" + document.EscapePointer(key), true
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list := v.Get(name)
		if list == nil {
			continue
		}
		c.Meter.Work(len(list.List))
		for i, y := range list.List {
			if at, ok := c.search(y, key, x, depth+1); ok {
				return "/" + name + "/" + strconv.Itoa(i) + at, true
			}
		}
	}
	return "", false
}

// holder returns the document that a path leads into, and the pointer inside it.
func (c *compiler) holder(path string) (*document.Value, []string) {
	root := c.root
	if strings.HasPrefix(path, "!") {
		name, rest, below := strings.Cut(path, "/")
		root, path = c.extra[name], ""
		if below {
			path = "/" + rest
		}
	}
	names := strings.Split(path, "/")[1:]
	for i, n := range names {
		names[i] = document.PointerText.Replace(n)
	}
	return root, names
}

// replace replaces the document that a path leads into.
func (c *compiler) replace(path string, v *document.Value) {
	if name, _, _ := strings.Cut(path, "/"); strings.HasPrefix(path, "!") {
		c.extra[name] = v
		return
	}
	c.root = v
}

// weaker returns a document without one keyword of a schema, and the keyword if the pointer does
// not name it. It returns nil if there is nothing to leave out. If whole is set, the pointer leads
// to the schema; otherwise to the keyword or to a schema in its place.
func weaker(root *document.Value, pointer []string, whole bool) (v *document.Value, key string) {
	if len(pointer) == 0 {
		return weakened(root)
	}
	if root == nil {
		return nil, ""
	}
	next := document.Child(root, pointer[0])
	if next == nil {
		return nil, ""
	}
	var with *document.Value
	switch {
	case len(pointer) > 1:
		if with, key = weaker(next, pointer[1:], whole); with == nil {
			return nil, ""
		}
		if with == removed {
			if root.Kind == document.KindObject && (slices.Contains(document.Named, pointer[0]) &&
				pointer[0] != "patternProperties") {
				with = next.With(pointer[1], &document.Value{Kind: document.KindBool, Text: "true"})
			} else {
				with = next.With(pointer[1], nil)
			}
		}
	case whole:
		if with, key = weakened(next); with == nil {
			return nil, ""
		}
	default:
		return removed, ""
	}
	return root.With(pointer[0], with), key
}

// removed represents a value that is left out.
var removed = &document.Value{}

// weakening lists keywords in the order in which they are left out if the faulty one is unknown:
// rarely supported ones first, types last.
var weakening = []string{"unevaluatedProperties", "unevaluatedItems", "not", "if", "dependentRequired",
	"dependentSchemas", "dependencies", "contains", "uniqueItems", "propertyNames", "patternProperties", "pattern",
	"format", "multipleOf", "oneOf", "minProperties", "maxProperties", "minLength", "maxLength", "minItems", "maxItems",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", "$ref", "$dynamicRef",
	"$recursiveRef", "const", "enum", "required", "additionalProperties", "prefixItems", "items", "additionalItems",
	"properties", "type"}

// weakened returns a schema without the first of these keywords that it has, and the keyword. A
// oneOf becomes an anyOf; a value that is not a schema becomes true.
func weakened(v *document.Value) (*document.Value, string) {
	if v == nil || v.IsTrue() {
		return nil, ""
	}
	for _, key := range weakening {
		x := v.Get(key)
		if x == nil {
			continue
		}
		out := v.But(key)
		if key == "oneOf" && v.Get("anyOf") == nil {
			out = out.And("anyOf", x)
		}
		return out, key
	}
	return &document.Value{Kind: document.KindBool, Text: "true"}, ""
}
