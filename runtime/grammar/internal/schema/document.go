package schema

import (
	"net/url"
	"slices"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
)

// document is a schema as received. $id gives its parts addresses (JSON Schema Core 2020-12,
// section 8.2). Before compilation, references by address are rewritten to JSON pointers, and
// common misspellings are corrected (normalize).
type document struct {
	root  *value
	meter *automaton.Meter
	// places maps addresses without fragment to paths, anchors those with one.
	places, anchors map[string]string
	old             bool // draft 4 or older, with id in place of $id
	nullable        bool // may be OpenAPI 3.0, where nullable adds null to a type
}

// named are keywords that map names to schemas, and data are those whose values are not schemas.
var (
	named = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	data  = []string{"const", "enum", "default", "examples", "example", "required", "dependentRequired"}
)

// trail is the path to a part of a document; nil is the root.
type trail struct {
	up   *trail
	name string
}

// path returns the trail as a JSON pointer.
func (t *trail) path() string {
	var names []string
	for ; t != nil; t = t.up {
		names = append(names, escapePointer(t.name))
	}
	if names == nil {
		return ""
	}
	slices.Reverse(names)
	return "/" + strings.Join(names, "/")
}

// readSchema parses and normalizes a schema.
func readSchema(text []byte, m *automaton.Meter) (*value, error) {
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
func settle(root *value, m *automaton.Meter) {
	d := &document{root: root, meter: m, places: map[string]string{}, anchors: map[string]string{}, nullable: true}
	if s := root.get("$schema"); s != nil {
		d.nullable = !strings.Contains(s.text, "json-schema.org")
		d.old = strings.Contains(s.text, "draft-04") || strings.Contains(s.text, "draft-03")
	}
	d.each(root, nil, &url.URL{}, false, func(v *value, at *trail, base *url.URL) {
		normalize(v)
		d.note(v, at, base)
	})
	d.each(root, nil, &url.URL{}, false, d.rewrite)
}

// each calls do for all schemas of a document with their paths and base addresses. names means that
// v is not a schema but maps names to schemas.
func (d *document) each(v *value, at *trail, base *url.URL, names bool, do func(*value, *trail, *url.URL)) {
	d.meter.Work(4 + len(v.members) + len(v.list))
	if v.kind == kindObject && !names {
		if id := d.address(v); id != nil {
			base = base.ResolveReference(id)
			d.meter.Work(len(id.Path))
		}
		do(v, at, base)
	}
	for _, m := range v.members {
		if !names && slices.Contains(data, m.name) {
			continue
		}
		if m.value.kind == kindObject || m.value.kind == kindArray {
			d.each(m.value, &trail{at, m.name}, base, !names && slices.Contains(named, m.name), do)
		}
	}
	for i, x := range v.list {
		if x.kind == kindObject || x.kind == kindArray {
			d.each(x, &trail{at, itoa(i)}, base, false, do)
		}
	}
}

// normalize corrects common deviations of clients: a keyword that is null counts as missing, except
// const and default; types may be in capitals, as in Gemini's API; TYPE_UNSPECIFIED is no type.
func normalize(v *value) {
	v.members = slices.DeleteFunc(v.members, func(m member) bool {
		return m.value.kind == kindNull && m.name != "const" && m.name != "default" && m.name != "example" ||
			m.name == "type" && m.value.text == "TYPE_UNSPECIFIED"
	})
	for i, m := range v.members {
		if m.name != "type" {
			continue
		}
		if m.value.kind != kindArray {
			v.members[i].value = typeNamed(m.value)
			continue
		}
		for j, x := range m.value.list {
			m.value.list[j] = typeNamed(x)
		}
	}
}

// typeNamed returns the name of a type in lower case. It returns other values unchanged.
func typeNamed(x *value) *value {
	name := strings.ToLower(x.text)
	if x.kind != kindString || name == x.text || !contains(typeNames, name) {
		return x
	}
	return &value{kind: kindString, text: name}
}

// address returns the address that a schema declares, or nil.
func (d *document) address(v *value) *url.URL {
	id := v.get("$id")
	if id == nil && d.old {
		id = v.get("id")
	}
	if id == nil || id.kind != kindString || strings.HasPrefix(id.text, "#") {
		return nil
	}
	u, err := url.Parse(id.text)
	if err != nil {
		return nil
	}
	u.Fragment = ""
	return u
}

// note records the addresses of a schema. The first of equal ones wins.
func (d *document) note(v *value, at *trail, base *url.URL) {
	add := func(to map[string]string, name string) {
		if _, met := to[name]; !met {
			path := at.path()
			d.meter.Take(automaton.EntryCost + len(name) + len(path))
			to[name] = path
		}
	}
	if at == nil || d.address(v) != nil {
		add(d.places, base.String())
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		a := v.get(key)
		if a == nil || a.kind != kindString || key == "id" && !d.old {
			continue
		}
		name := a.text
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
func (d *document) rewrite(v *value, _ *trail, base *url.URL) {
	for i, m := range v.members {
		switch {
		case m.name == "$ref" && m.value.kind == kindString:
			d.meter.Work(len(m.value.text))
			if at, ok := d.place(m.value.text, base); ok {
				text := "#" + strings.ReplaceAll(at, "%", "%25")
				v.members[i].value = &value{kind: kindString, text: text}
			}
		case m.name == "type" && d.nullable && v.get("nullable").isTrue():
			v.members[i].value = orNull(m.value)
		}
	}
}

// orNull returns a type or a list of types with null added.
func orNull(t *value) *value {
	null := &value{kind: kindString, text: "null"}
	switch {
	case t.kind == kindString && t.text != "null":
		return &value{kind: kindArray, list: []*value{t, null}}
	case t.kind == kindArray && !slices.ContainsFunc(t.list, null.equal):
		return &value{kind: kindArray, list: append(slices.Clone(t.list), null)}
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
func (d *document) at(path string) *value {
	v := d.root
	for _, name := range strings.Split(path, "/")[1:] {
		if v = child(v, pointerText.Replace(name)); v == nil {
			return nil
		}
	}
	return v
}
