package jinja

import "slices"

// Methods of lists and mappings. transformers' sandbox refuses methods that change a value, but
// templates for other programs use them.

// method returns the method of v with the given name, bound to v, or nil.
func method(v any, name string) any {
	if t, ok := asText(v); ok {
		if m, ok := stringMethods[name]; ok {
			return function(func(r *run, a *arguments) any { a.who = name; r.scan(len(t.Plain)); return m(r, t, a) })
		}
		return nil
	}
	switch v := v.(type) {
	case *List:
		if m, ok := listMethods[name]; ok {
			return function(func(r *run, a *arguments) any { a.who = name; return m(r, v, a) })
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return function(func(r *run, a *arguments) any { a.who = name; return m(r, v, a) })
		}
	case *cycler:
		return v.attribute(name)
	}
	return nil
}

var listMethods = map[string]func(r *run, l *List, a *arguments) any{
	"append": func(r *run, l *List, a *arguments) any {
		r.items(2) // append may copy the list to twice the space
		l.items = append(l.items, a.need(0, "object"))
		return nil
	},
	"extend": func(r *run, l *List, a *arguments) any {
		more := r.iterate(a.need(0, "iterable"))
		r.items(len(l.items) + len(more))
		l.items = slices.Concat(l.items, more)
		return nil
	},
	"pop": func(r *run, l *List, a *arguments) any {
		i := a.integer(0, "index", -1)
		if i < 0 {
			i += len(l.items)
		}
		if i < 0 || i >= len(l.items) {
			fail("pop: index out of range")
		}
		v := l.items[i]
		r.items(len(l.items))
		l.items = slices.Concat(l.items[:i], l.items[i+1:])
		return v
	},
	"copy": func(r *run, l *List, a *arguments) any { return &List{r.copy(l.items), l.tuple} },
	"count": func(r *run, l *List, a *arguments) any {
		n := 0
		for _, item := range l.items {
			if r.equal(item, a.need(0, "value")) {
				n++
			}
		}
		return n
	},
	"index": func(r *run, l *List, a *arguments) any {
		for i, item := range l.items {
			if r.equal(item, a.need(0, "value")) {
				return i
			}
		}
		fail("index: the list does not contain the value")
		return nil
	},
}

var dictMethods = map[string]func(r *run, d *Dict, a *arguments) any{
	"get": func(r *run, d *Dict, a *arguments) any {
		if v, ok := r.lookup(d, a.need(0, "key")); ok {
			return v
		}
		v, _ := a.value(1, "default")
		return v
	},
	"items": func(r *run, d *Dict, _ *arguments) any { return &List{items: r.pairs(d)} },
	"keys":  func(r *run, d *Dict, _ *arguments) any { return &List{items: r.iterate(d)} },
	"values": func(r *run, d *Dict, _ *arguments) any {
		r.items(len(d.entries))
		values := make([]any, len(d.entries))
		for i, e := range d.entries {
			values[i] = e.value
		}
		return &List{items: values}
	},
	"copy": func(r *run, d *Dict, _ *arguments) any {
		c := &Dict{}
		update(r, c, d)
		return c
	},
	"update": func(r *run, d *Dict, a *arguments) any {
		update(r, d, makeDict(r, a))
		return nil
	},
	"setdefault": func(r *run, d *Dict, a *arguments) any {
		key := a.need(0, "key")
		if v, ok := r.lookup(d, key); ok {
			return v
		}
		v, _ := a.value(1, "default")
		r.put(d, key, v)
		return v
	},
	"pop": func(r *run, d *Dict, a *arguments) any {
		key := a.need(0, "key")
		v, ok := r.lookup(d, key)
		if ok {
			r.items(len(d.entries)) // drop moves later entries
			d.drop(key)
			return v
		}
		if v, ok = a.value(1, "default"); !ok {
			fail("pop: the mapping does not contain the key")
		}
		return v
	},
}
