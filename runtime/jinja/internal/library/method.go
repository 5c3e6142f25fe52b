package library

import (
	"slices"

	"sandwich/runtime/jinja/internal/object"
)

// Methods of lists and mappings. transformers' sandbox refuses methods that change a value, but
// templates for other programs use them.

// method returns the method of v with the given name, bound to v, or nil.
func method(v any, name string) any {
	if t, ok := object.AsText(v); ok {
		if m, ok := stringMethods[name]; ok {
			return Function(func(r *Run, a *Arguments) any { a.Who = name; r.Scan(len(t.Plain)); return m(r, t, a) })
		}
		return nil
	}
	switch v := v.(type) {
	case *object.List:
		if m, ok := listMethods[name]; ok {
			return Function(func(r *Run, a *Arguments) any { a.Who = name; return m(r, v, a) })
		}
	case *object.Dict:
		if m, ok := dictMethods[name]; ok {
			return Function(func(r *Run, a *Arguments) any { a.Who = name; return m(r, v, a) })
		}
	case *cycler:
		return v.attribute(name)
	}
	return nil
}

var listMethods = map[string]func(r *Run, l *object.List, a *Arguments) any{
	"append": func(r *Run, l *object.List, a *Arguments) any {
		r.Items(2) // append may copy the list to twice the space
		l.Items = append(l.Items, a.need(0, "object"))
		return nil
	},
	"extend": func(r *Run, l *object.List, a *Arguments) any {
		more := r.Iterate(a.need(0, "iterable"))
		r.Items(len(l.Items) + len(more))
		l.Items = slices.Concat(l.Items, more)
		return nil
	},
	"pop": func(r *Run, l *object.List, a *Arguments) any {
		i := a.integer(0, "index", -1)
		if i < 0 {
			i += len(l.Items)
		}
		if i < 0 || i >= len(l.Items) {
			object.Fail("pop: index out of range")
		}
		v := l.Items[i]
		r.Items(len(l.Items))
		l.Items = slices.Concat(l.Items[:i], l.Items[i+1:])
		return v
	},
	"copy": func(r *Run, l *object.List, a *Arguments) any {
		return &object.List{Items: r.copy(l.Items), Tuple: l.Tuple}
	},
	"count": func(r *Run, l *object.List, a *Arguments) any {
		n := 0
		for _, item := range l.Items {
			if r.Equal(item, a.need(0, "value")) {
				n++
			}
		}
		return n
	},
	"index": func(r *Run, l *object.List, a *Arguments) any {
		for i, item := range l.Items {
			if r.Equal(item, a.need(0, "value")) {
				return i
			}
		}
		object.Fail("index: the list does not contain the value")
		return nil
	},
}

var dictMethods = map[string]func(r *Run, d *object.Dict, a *Arguments) any{
	"get": func(r *Run, d *object.Dict, a *Arguments) any {
		if v, ok := r.Lookup(d, a.need(0, "key")); ok {
			return v
		}
		v, _ := a.Value(1, "default")
		return v
	},
	"items": func(r *Run, d *object.Dict, _ *Arguments) any { return &object.List{Items: r.pairs(d)} },
	"keys":  func(r *Run, d *object.Dict, _ *Arguments) any { return &object.List{Items: r.Iterate(d)} },
	"values": func(r *Run, d *object.Dict, _ *Arguments) any {
		r.Items(len(d.Entries))
		values := make([]any, len(d.Entries))
		for i, e := range d.Entries {
			values[i] = e.Value
		}
		return &object.List{Items: values}
	},
	"copy": func(r *Run, d *object.Dict, _ *Arguments) any {
		c := &object.Dict{}
		update(r, c, d)
		return c
	},
	"update": func(r *Run, d *object.Dict, a *Arguments) any {
		update(r, d, makeDict(r, a))
		return nil
	},
	"setdefault": func(r *Run, d *object.Dict, a *Arguments) any {
		key := a.need(0, "key")
		if v, ok := r.Lookup(d, key); ok {
			return v
		}
		v, _ := a.Value(1, "default")
		r.Put(d, key, v)
		return v
	},
	"pop": func(r *Run, d *object.Dict, a *Arguments) any {
		key := a.need(0, "key")
		v, ok := r.Lookup(d, key)
		if ok {
			r.Items(len(d.Entries)) // drop moves later entries
			d.Drop(key)
			return v
		}
		if v, ok = a.Value(1, "default"); !ok {
			object.Fail("pop: the mapping does not contain the key")
		}
		return v
	},
}
