package document

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// document is a schema as received. $id gives its parts addresses (JSON Schema Core 2020-12,
// section 8.2). Before compilation, references by address are rewritten to JSON pointers, and
// common misspellings are corrected (normalize).
type document struct {
	root  *Value
	meter *automaton.Meter
	// places maps addresses without fragment to paths, anchors those with one.
	places, anchors map[string]string
	old             bool // draft 4 or older, with id in place of $id
	nullable        bool // may be OpenAPI 3.0, where nullable adds null to a type
}

// Named are keywords that map names to schemas, and data are those whose values are not schemas.
var (
	Named = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	data  = []string{"const", "enum", "default", "examples", "example", "required", "dependentRequired"}
)

// Trail is the path to a part of a document; nil is the root.
type Trail struct {
	up   *Trail
	name string
}

// Below returns the trail of a member or an item below t.
func (t *Trail) Below(name string) *Trail { return &Trail{t, name} }

// Path returns the trail as a JSON pointer.
func (t *Trail) Path() string {
	var names []string
	for ; t != nil; t = t.up {
		names = append(names, EscapePointer(t.name))
	}
	if names == nil {
		return ""
	}
	slices.Reverse(names)
	return "/" + strings.Join(names, "/")
}

// ReadSchema parses and normalizes a schema.
func ReadSchema(text []byte, m *automaton.Meter) (*Value, error) {
	root, err := parseValue(text, m)
	if err != nil {
		return nil, err
	}
	return root, automaton.Guard(func() error {
		settle(root, m)
		return nil
	}, nil)
}

// settle normalizes the schemas of a document and rewrites references by address. It applies
// OpenAPI's nullable only if the document does not declare itself as JSON Schema, which has no such
// keyword.
func settle(root *Value, m *automaton.Meter) {
	d := &document{root: root, meter: m, places: map[string]string{}, anchors: map[string]string{}, nullable: true}
	if s := root.Get("$schema"); s != nil {
		d.nullable = !strings.Contains(s.Text, "json-schema.org")
		d.old = strings.Contains(s.Text, "draft-04") || strings.Contains(s.Text, "draft-03")
	}
	d.each(root, nil, &url.URL{}, false, func(v *Value, at *Trail, base *url.URL) {
		normalize(v)
		d.note(v, at, base)
	})
	d.each(root, nil, &url.URL{}, false, d.rewrite)
}

// each calls do for all schemas of a document with their paths and base addresses. names means that
// v is not a schema but maps names to schemas.
func (d *document) each(v *Value, at *Trail, base *url.URL, names bool, do func(*Value, *Trail, *url.URL)) {
	d.meter.Work(4 + len(v.Members) + len(v.List))
	if v.Kind == KindObject && !names {
		if id := d.address(v); id != nil {
			base = base.ResolveReference(id)
			d.meter.Work(len(id.Path))
		}
		do(v, at, base)
	}
	for _, m := range v.Members {
		if !names && slices.Contains(data, m.Name) {
			continue
		}
		if m.Value.Kind == KindObject || m.Value.Kind == KindArray {
			d.each(m.Value, &Trail{at, m.Name}, base, !names && slices.Contains(Named, m.Name), do)
		}
	}
	for i, x := range v.List {
		if x.Kind == KindObject || x.Kind == KindArray {
			d.each(x, &Trail{at, strconv.Itoa(i)}, base, false, do)
		}
	}
}

// normalize corrects common deviations of clients: a keyword that is null counts as missing, except
// const and default; types may be in capitals, as in Gemini's API; TYPE_UNSPECIFIED is no type.
func normalize(v *Value) {
	v.Members = slices.DeleteFunc(v.Members, func(m Member) bool {
		return m.Value.Kind == KindNull && m.Name != "const" && m.Name != "default" && m.Name != "example" ||
			m.Name == "type" && m.Value.Text == "TYPE_UNSPECIFIED"
	})
	for i, m := range v.Members {
		if m.Name != "type" {
			continue
		}
		if m.Value.Kind != KindArray {
			v.Members[i].Value = typeNamed(m.Value)
			continue
		}
		for j, x := range m.Value.List {
			m.Value.List[j] = typeNamed(x)
		}
	}
}

// typeNamed returns the name of a type in lower case. It returns other values unchanged.
func typeNamed(x *Value) *Value {
	name := strings.ToLower(x.Text)
	if x.Kind != KindString || name == x.Text || !slices.Contains(TypeNames, name) {
		return x
	}
	return &Value{Kind: KindString, Text: name}
}

// address returns the address that a schema declares, or nil.
func (d *document) address(v *Value) *url.URL {
	id := v.Get("$id")
	if id == nil && d.old {
		id = v.Get("id")
	}
	if id == nil || id.Kind != KindString || strings.HasPrefix(id.Text, "#") {
		return nil
	}
	u, err := url.Parse(id.Text)
	if err != nil {
		return nil
	}
	u.Fragment = ""
	return u
}

// note records the addresses of a schema. The first of equal ones wins.
func (d *document) note(v *Value, at *Trail, base *url.URL) {
	add := func(to map[string]string, name string) {
		if _, met := to[name]; !met {
			path := at.Path()
			d.meter.Take(automaton.EntryCost + len(name) + len(path))
			to[name] = path
		}
	}
	if at == nil || d.address(v) != nil {
		add(d.places, base.String())
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		a := v.Get(key)
		if a == nil || a.Kind != KindString || key == "id" && !d.old {
			continue
		}
		name := a.Text
		if strings.HasSuffix(key, "id") { // drafts up to 7
			if !strings.HasPrefix(name, "#") {
				continue
			}
			name = name[1:]
		}
		add(d.anchors, base.String()+"#"+name)
	}
}

// rewrite rewrites references of a schema to paths, and adds null to its types if nullable is set.
func (d *document) rewrite(v *Value, _ *Trail, base *url.URL) {
	for i, m := range v.Members {
		switch {
		case m.Name == "$ref" && m.Value.Kind == KindString:
			d.meter.Work(len(m.Value.Text))
			if at, ok := d.place(m.Value.Text, base); ok {
				text := "#" + strings.ReplaceAll(at, "%", "%25")
				v.Members[i].Value = &Value{Kind: KindString, Text: text}
			}
		case m.Name == "type" && d.nullable && v.Get("nullable").IsTrue():
			v.Members[i].Value = orNull(m.Value)
		}
	}
}

// orNull returns a type or a list of types with null added.
func orNull(t *Value) *Value {
	null := &Value{Kind: KindString, Text: "null"}
	switch {
	case t.Kind == KindString && t.Text != "null":
		return &Value{Kind: KindArray, List: []*Value{t, null}}
	case t.Kind == KindArray && !slices.ContainsFunc(t.List, null.Equal):
		return &Value{Kind: KindArray, List: append(slices.Clone(t.List), null)}
	}
	return t
}

// place returns the path of a reference. It returns false if the document has no such place or if
// the reference is a path already.
func (d *document) place(ref string, base *url.URL) (string, bool) {
	u, err := url.Parse(ref)
	if err != nil {
		return "", false
	}
	u = base.ResolveReference(u)
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	root, met := d.places[u.String()]
	switch {
	case !met:
		return "", false
	case root == "" && strings.HasPrefix(ref, "#/"):
		return "", false // already a path
	case fragment == "":
		return root, true
	case fragment[0] != '/':
		at, met := d.anchors[u.String()+"#"+fragment]
		return at, met
	case d.at(root+fragment) != nil:
		return root + fragment, true
	}
	return fragment, d.at(fragment) != nil // a path from the root in spite of $id
}

// at returns the value at a path, or nil.
func (d *document) at(path string) *Value {
	v := d.root
	for _, name := range strings.Split(path, "/")[1:] {
		if v = Child(v, PointerText.Replace(name)); v == nil {
			return nil
		}
	}
	return v
}
