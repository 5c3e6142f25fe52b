package schema

import (
	"net/url"
	"strconv"
	"strings"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/schema/document"
)

// inPlace returns the schemas of references and allOf, which apply to the same value.
func (c *compiler) inPlace(x located) (parts []located, err error) {
	for _, key := range document.Referring {
		r := x.schema.Get(key)
		if r == nil {
			continue
		}
		target, err := c.resolve(key, r, x.path)
		if err != nil {
			return nil, err
		}
		v, err := c.find(target)
		if err != nil {
			return nil, err
		}
		parts = append(parts, located{v, target})
	}
	if l := x.schema.Get("allOf"); l != nil {
		for i, y := range l.List {
			parts = append(parts, located{y, x.path + "/allOf/" + strconv.Itoa(i)})
		}
	}
	return parts, nil
}

// resolve returns the path of a reference. A dynamic reference is resolved like a plain one if only
// one place of the document has the name, because no other dynamic scope can exist then.
func (c *compiler) resolve(key string, r *document.Value, path string) (string, error) {
	at := document.Show(path) + "/" + key
	ref, ok := strings.CutPrefix(r.Text, "#")
	if r.Kind != document.KindString || !ok {
		return "", automaton.Refuse(at,
			"%q is outside the schema; only references to paths and to $id inside the schema are "+
				"supported", automaton.Clip(r.Text))
	}
	if c.anchors == nil {
		c.anchors, c.twice = map[string]string{}, map[string]bool{}
		c.noteAnchors(c.root, nil)
	}
	switch {
	case key == "$dynamicRef" && c.twice[ref], key == "$recursiveRef" && c.inner:
		return "", automaton.Refuse(at, "%q has no unique target, because it depends on the dynamic scope",
			automaton.Clip(r.Text))
	case ref != "" && ref[0] != '/':
		if found, ok := c.anchors[ref]; ok {
			return found, nil
		}
		return "", automaton.Refuse(at, "the schema has no anchor %q", automaton.Clip(ref))
	}
	if plain, err := url.PathUnescape(ref); err == nil {
		if _, err := c.find(plain); err == nil {
			return plain, nil
		}
	}
	if _, err := c.find(ref); err != nil {
		return "", automaton.Refuse(at, "%q does not exist in the schema", automaton.Clip(r.Text))
	}
	return ref, nil
}

// noteAnchors collects the anchors of the schema. The first of equal ones wins.
func (c *compiler) noteAnchors(v *document.Value, at *document.Trail) {
	c.Meter.Work(4)
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.Get(key); a != nil && a.Kind == document.KindString {
			if _, met := c.anchors[a.Text]; met {
				c.twice[a.Text] = true
			} else {
				path := at.Path()
				c.Meter.Take(automaton.EntryCost + len(path))
				c.anchors[a.Text] = path
			}
		}
	}
	if id := v.Get("$id"); at != nil && id != nil && id.Kind == document.KindString {
		c.inner = true
	}
	for _, m := range v.Members {
		c.noteAnchors(m.Value, at.Below(m.Name))
	}
	for i, x := range v.List {
		c.noteAnchors(x, at.Below(strconv.Itoa(i)))
	}
}
