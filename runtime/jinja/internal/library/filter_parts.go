package library

import (
	"fmt"
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// Filters that divide sequences or shorten and escape texts.

// filterBatch returns lists of linecount items. fill_with extends the last list.
func filterBatch(r *Run, in any, a *Arguments) any {
	items, n := r.Iterate(in), a.positive(0, "linecount")
	fill, _ := a.Value(1, "fill_with")
	var rows []any
	for from := 0; from < len(items); from += n {
		row := r.copy(items[from:min(len(items), from+n)])
		if fill != nil && len(row) < n {
			row = r.filled(row, fill, n-len(row))
		}
		r.Items(3)
		rows = append(rows, &object.List{Items: row})
	}
	return &object.List{Items: rows, Generator: true}
}

// filterSlice returns the given number of lists, the first of which are longer by one item where
// the items do not divide evenly. fill_with extends all others by one item, as in Jinja2.
func filterSlice(r *Run, in any, a *Arguments) any {
	items, n := r.Iterate(in), a.positive(0, "slices")
	fill, _ := a.Value(1, "fill_with")
	each, longer := len(items)/n, len(items)%n
	r.Items(3 * n)
	rows := make([]any, n)
	for i, from := 0, 0; i < n; i++ {
		size := each
		if i < longer {
			size++
		}
		row := r.copy(items[from : from+size])
		if fill != nil && i >= longer {
			row = r.filled(row, fill, 1)
		}
		rows[i] = &object.List{Items: row}
		from += size
	}
	return &object.List{Items: rows, Generator: true}
}

// filled appends n copies of a value to a list.
func (r *Run) filled(items []any, fill any, n int) []any {
	r.Items(len(items) + n)
	for range n {
		items = append(items, fill)
	}
	return items
}

// filterTruncate shortens a text to length characters including the end. It cuts at the last space
// unless killwords is set, and leaves texts alone that exceed the length by at most leeway.
func filterTruncate(r *Run, in any, a *Arguments) any {
	t := r.TextOf(in)
	length, end := a.integer(0, "length", 255), a.text(2, "end", "...")
	keep := length - r.Runes(end)
	leeway := a.integer(3, "leeway", 5)
	if keep < 0 || leeway < 0 {
		object.Fail("truncate needs a length of at least that of its end, and a leeway of at least 0")
	}
	if r.Runes(t.Plain)-leeway <= length {
		return t.Value()
	}
	r.Scan(4 * len(t.Plain))
	to := object.ByteOffset(t.Plain, keep)
	if !a.flag(1, "killwords", false) {
		if space := strings.LastIndexByte(t.Plain[:to], ' '); space >= 0 {
			to = space
		}
	}
	return r.Concat(r.Cut(t, 0, to), object.Text{Plain: end}).Value()
}

// pathEscapes and queryEscapes map bytes to their escapes in the path and in the query of a URL.
var pathEscapes, queryEscapes = func() (path, query [256]string) {
	for c := range 256 {
		path[c] = fmt.Sprintf("%%%02X", c)
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_', c == '.', c == '-', c == '~',
			c == '/':
			path[c] = ""
		}
	}
	query = path
	query['/'], query[' '] = "%2F", "+"
	return path, query
}()

// filterURL escapes a text for the path of a URL, or a mapping or pairs for its query.
func filterURL(r *Run, in any, _ *Arguments) any {
	out := &object.Builder{Meter: &r.Meter}
	d, isDict := in.(*object.Dict)
	l, isList := in.(*object.List)
	if !isDict && !isList {
		out.Escape(r.TextOf(in), &pathEscapes)
		return out.Text().Value()
	}
	if isDict {
		l = &object.List{Items: r.pairs(d)}
	}
	for i, item := range l.Items {
		pair := r.Iterate(item)
		if len(pair) != 2 {
			object.Fail("urlencode needs a text, a mapping or pairs")
		}
		if i > 0 {
			out.Print("&")
		}
		out.Escape(r.TextOf(pair[0]), &queryEscapes)
		out.Print("=")
		out.Escape(r.TextOf(pair[1]), &queryEscapes)
	}
	return out.Text().Value()
}
