package jinja

import (
	"math"
	"slices"
	"strconv"
)

// jsonWriter writes the output of tojson: Python's json.dumps with ensure_ascii off, as
// transformers defines it for chat templates. Any difference in spaces or escapes would change the
// tokens that the model was trained on.
type jsonWriter struct {
	*builder
	comma, colon string
	lines        bool   // write one element per line
	pad          string // indentation of one level
	sort         bool
}

func filterJSON(r *run, in any, a *arguments) any {
	w := &jsonWriter{builder: &builder{m: &r.meter}, comma: ", ", colon: ": "}
	w.sort = a.flag(3, "sort_keys", false)
	if indent, ok := a.value(1, "indent"); ok && indent != nil {
		w.lines, w.comma = true, ","
		if pad, ok := plain(indent); ok {
			w.pad = pad
		} else {
			w.pad = r.repeat(" ", a.integer(1, "indent", 0))
		}
	}
	if separators, ok := a.value(2, "separators"); ok && separators != nil {
		pair := r.iterate(separators)
		if len(pair) != 2 {
			fail("tojson needs a pair of separators")
		}
		w.comma, w.colon = r.str(pair[0]), r.str(pair[1])
	}
	w.value(in, 0)
	return w.text().Value()
}

func (w *jsonWriter) value(v any, level int) {
	w.m.enter()
	defer w.m.leave()
	switch v := v.(type) {
	case *List:
		w.write("[")
		for i, item := range v.items {
			w.next(i, level+1)
			w.value(item, level+1)
		}
		w.shut("]", len(v.items), level)
	case *Dict:
		w.write("{")
		for i, e := range w.order(v) {
			w.next(i, level+1)
			w.key(e.key)
			w.write(w.colon)
			w.value(e.value, level+1)
		}
		w.shut("}", len(v.entries), level)
	case string:
		w.quote(Text{Plain: v})
	case *Text:
		w.quote(*v)
	default:
		w.write(jsonScalar(v))
	}
}

func jsonScalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return floatText(v)
	}
	strict(v)
	fail("tojson cannot write a %s", typeName(v))
	return ""
}

func (w *jsonWriter) order(d *Dict) []dictEntry {
	if !w.sort {
		return d.entries
	}
	w.m.items(2 * len(d.entries))
	entries := slices.Clone(d.entries)
	slices.SortStableFunc(entries, func(a, b dictEntry) int { return w.m.order(a.key, b.key) })
	return entries
}

func (w *jsonWriter) key(key any) {
	if t, ok := asText(key); ok {
		w.quote(t)
	} else {
		w.quote(Text{Plain: jsonScalar(key)})
	}
}

func (w *jsonWriter) next(i, level int) {
	if i > 0 {
		w.write(w.comma)
	}
	w.line(level)
}

func (w *jsonWriter) shut(bracket string, n, level int) {
	if n > 0 {
		w.line(level)
	}
	w.write(bracket)
}

func (w *jsonWriter) line(level int) {
	if w.lines {
		w.write("\n")
		w.write(w.m.repeat(w.pad, level))
	}
}

// jsonEscapes maps a byte to its escape in JSON strings, or to an empty string.
var jsonEscapes = func() (table [256]string) {
	for c := range ' ' {
		table[c] = `\u00` + hexText(int(c), 2)
	}
	for c, escape := range map[byte]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`,
		'\f': `\f`} {
		table[c] = escape
	}
	return table
}()

func (w *jsonWriter) quote(t Text) {
	w.write(`"`)
	w.escape(t, &jsonEscapes)
	w.write(`"`)
}
