package grammar

import (
	"net/url"
	"slices"
	"strings"
)

// document is a schema as it was sent, whose places have addresses of their own where $id says so
// (JSON Schema Core 2020-12, section 8.2). Before it is compiled every reference by an address is
// written as one by its place.
type document struct {
	root *value
	// places are paths by addresses without a fragment, and anchors by addresses with one.
	places, anchors map[string]string
	old             bool // draft 4 or older: addresses are called id
	nullable        bool // it may be OpenAPI's 3.0, where nullable adds null to a type
}

// named are keywords whose members are schemas by names, and data are those whose values are none.
var (
	named = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	data  = []string{"const", "enum", "default", "examples", "example", "required", "dependentRequired"}
)

// settle rewrites references by address, and types that may be null by OpenAPI's keyword: only
// where the document does not say that it is JSON Schema, which has no such keyword.
func settle(root *value) {
	d := &document{root: root, places: map[string]string{}, anchors: map[string]string{}, nullable: true}
	if s := root.get("$schema"); s != nil {
		d.nullable = !strings.Contains(s.text, "json-schema.org")
		d.old = strings.Contains(s.text, "draft-04") || strings.Contains(s.text, "draft-03")
	}
	d.each(root, "", &url.URL{}, false, d.note)
	d.each(root, "", &url.URL{}, false, d.rewrite)
}

// each calls do for the schemas of a document with their paths and the address that theirs are
// relative to; names tells that v is no schema but has schemas by names.
func (d *document) each(v *value, path string, base *url.URL, names bool, do func(*value, string, *url.URL)) {
	if v.kind == kindObject && !names {
		if id := d.address(v); id != nil {
			base = base.ResolveReference(id)
		}
		do(v, path, base)
	}
	for _, m := range v.members {
		if !names && slices.Contains(data, m.name) {
			continue
		}
		if m.value.kind == kindObject || m.value.kind == kindArray {
			d.each(m.value, path+"/"+escapePointer(m.name), base, !names && slices.Contains(named, m.name), do)
		}
	}
	for i, x := range v.list {
		if x.kind == kindObject || x.kind == kindArray {
			d.each(x, path+"/"+itoa(i), base, false, do)
		}
	}
}

// address is the one that a schema gives itself; nil where it has none.
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

// note writes down the addresses of a schema: the first of equal ones holds.
func (d *document) note(v *value, path string, base *url.URL) {
	add := func(to map[string]string, name string) {
		if _, met := to[name]; !met {
			to[name] = path
		}
	}
	if path == "" || d.address(v) != nil {
		add(d.places, base.String())
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		a := v.get(key)
		if a == nil || a.kind != kindString || key == "id" && !d.old {
			continue
		}
		name := a.text
		if strings.HasSuffix(key, "id") { // as drafts up to 7 have it
			if !strings.HasPrefix(name, "#") {
				continue
			}
			name = name[1:]
		}
		add(d.anchors, base.String()+"#"+name)
	}
}

// rewrite gives a schema references by places, and null where OpenAPI's keyword adds it.
func (d *document) rewrite(v *value, path string, base *url.URL) {
	if r := v.get("$ref"); r != nil && r.kind == kindString {
		if at, ok := d.place(r.text, base); ok {
			r.text = "#" + strings.ReplaceAll(at, "%", "%25")
		}
	}
	t := v.get("type")
	if t == nil || !d.nullable || !v.get("nullable").isTrue() {
		return
	}
	null := &value{kind: kindString, text: "null"}
	switch {
	case t.kind == kindString && t.text != "null":
		one := *t
		*t = value{kind: kindArray, list: []*value{&one, null}}
	case t.kind == kindArray && !slices.ContainsFunc(t.list, null.equal):
		t.list = append(t.list, null)
	}
}

// place is the path that a reference means; not ok where the document has no such place, or where
// the reference says a path by itself.
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
		return "", false // as it stands
	case fragment == "":
		return root, true
	case fragment[0] != '/':
		at, met := d.anchors[u.String()+"#"+fragment]
		return at, met
	case d.at(root+fragment) != nil:
		return root + fragment, true
	}
	return fragment, d.at(fragment) != nil // written as if there were no $id
}

// at is what stands at a path; nil where there is nothing.
func (d *document) at(path string) *value {
	v := d.root
	for _, name := range strings.Split(path, "/")[1:] {
		if v = child(v, pointerText.Replace(name)); v == nil {
			return nil
		}
	}
	return v
}
