package library

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// filters is set by init, because some filters call others by name.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"abs": filterAbs, "attr": filterAttr, "default": filterDefault, "d": filterDefault,
		"float": filterFloat, "int": filterInt, "round": filterRound, "tojson": filterJSON,

		"capitalize": onRunes(capitalize), "lower": onRunes(lower), "title": onRunes(titleWords),
		"upper": onRunes(upper), "center": onMethod("center"), "replace": onMethod("replace"),
		"trim": onMethod("strip"), "string": filterString, "safe": filterString, "e": filterEscape,
		"escape": filterEscape, "format": filterFormat, "indent": filterIndent, "wordcount": filterWordcount,

		"length": filterLength, "count": filterLength, "first": filterFirst, "last": filterLast,
		"list": filterList, "items": filterItems, "dictsort": filterDictsort, "sort": filterSort,
		"batch": filterBatch, "slice": filterSlice, "truncate": filterTruncate, "urlencode": filterURL,
		"forceescape": filterEscape,

		"reverse": filterReverse, "unique": filterUnique, "groupby": filterGroupby, "join": filterJoin,
		"map": filterMap, "sum": filterSum, "max": extreme(1), "min": extreme(-1),
		"select": choose(true, false), "selectattr": choose(true, true),
		"reject": choose(false, false), "rejectattr": choose(false, true),
	}
}

// Filter applies the filter with the given name.
func (r *Run) Filter(name string, in any, a *Arguments) any {
	f, ok := filters[name]
	if !ok {
		object.Fail("unknown filter %s", object.Clip(name, 40))
	}
	a.Who = name
	r.Spend(1)
	return f(r, in, a)
}

// onMethod returns a filter that calls a method of strings.
func onMethod(name string) filterFunc {
	return func(r *Run, in any, a *Arguments) any { return stringMethods[name](r, r.TextOf(in), a) }
}

func filterAbs(r *Run, in any, _ *Arguments) any {
	switch n := object.Number(in).(type) {
	case int:
		if n < 0 {
			return object.Integers("-", 0, n)
		}
		return n
	case float64:
		return math.Abs(n)
	}
	object.Strict(in)
	object.Fail("abs needs a number")
	return nil
}

// filterAttr returns an attribute, but never an element of a mapping.
func filterAttr(r *Run, in any, a *Arguments) any {
	name := a.text(0, "name", "")
	if _, ok := in.(*object.Dict); ok && method(in, name) == nil {
		return object.Undefined("a dict has no attribute '" + name + "'")
	}
	return r.Attribute(in, name)
}

func filterDefault(_ *Run, in any, a *Arguments) any {
	if _, missing := in.(object.Undefined); missing || a.flag(1, "boolean", false) && !object.Truth(in) {
		if v, ok := a.Value(0, "default_value"); ok {
			return v
		}
		return ""
	}
	return in
}

func filterEscape(r *Run, in any, _ *Arguments) any {
	out := &object.Builder{Meter: &r.Meter}
	out.Escape(r.TextOf(in), &htmlEscapes)
	return out.Text().Value()
}

var htmlEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '\'': "&#39;", '"': "&#34;"}

func filterFloat(r *Run, in any, a *Arguments) any {
	if s, ok := object.Plain(in); ok {
		r.Scan(len(s))
		if f, err := strconv.ParseFloat(strings.TrimFunc(s, object.IsSpace), 64); err == nil {
			return f
		}
	} else if n := object.Number(in); n != nil {
		return object.ToFloat(n)
	}
	if v, ok := a.Value(0, "default"); ok {
		return v
	}
	return 0.0
}

func filterInt(r *Run, in any, a *Arguments) any {
	const past = 1 << 62
	f := math.NaN()
	switch in.(type) {
	case string, *object.Text:
		text := r.Str(in)
		r.Scan(len(text))
		s := strings.TrimFunc(text, object.IsSpace)
		if n, err := strconv.ParseInt(withoutPrefix(s, a.integer(1, "base", 10))); err == nil {
			return int(n)
		}
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			f = x
		}
	default:
		switch n := object.Number(in).(type) {
		case int:
			return n
		case float64:
			f = n
		}
	}
	if math.Abs(f) < past {
		return int(f)
	}
	if v, ok := a.Value(0, "default"); ok {
		return v
	}
	return 0
}

// withoutPrefix returns arguments for strconv.ParseInt, which accepts a prefix such as 0x only for
// base 0.
func withoutPrefix(s string, base int) (digits string, ofBase, bits int) {
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if n := len(prefix); n > 0 && len(s) > n && strings.EqualFold(s[:n], prefix) {
		s = s[n:]
	}
	return s, base, 64
}

func filterFormat(r *Run, in any, a *Arguments) any {
	if len(a.Named) > 0 {
		return r.Printf(r.TextOf(in), makeDict(r, a)).Value()
	}
	return r.Printf(r.TextOf(in), &object.List{Items: a.Positional, Tuple: true}).Value()
}

// filterIndent indents lines. By default it skips the first line, and blank lines after it.
func filterIndent(r *Run, in any, a *Arguments) any {
	pad := "    "
	if width, ok := a.Value(0, "width"); ok {
		if s, isText := object.Plain(width); isText {
			pad = s
		} else {
			pad = r.Repeat(" ", a.integer(0, "width", 4))
		}
	}
	first, blank := a.flag(1, "first", false), a.flag(2, "blank", false)
	out := &object.Builder{Meter: &r.Meter}
	t, from := r.TextOf(in), 0
	for i := 0; ; i++ {
		line, _, more := strings.Cut(t.Plain[from:], "\n")
		if i == 0 && first || i > 0 && (line != "" || blank) {
			out.Print(pad)
		}
		end := from + len(line)
		if !more {
			out.WritePart(t, from, end)
			return out.Text().Value()
		}
		out.WritePart(t, from, end+1)
		from = end + 1
	}
}

func filterLength(r *Run, in any, _ *Arguments) any { return r.Length(in) }

func filterRound(_ *Run, in any, a *Arguments) any {
	n := object.Number(in)
	if n == nil {
		object.Strict(in)
		object.Fail("round needs a number")
	}
	precision := min(max(a.integer(0, "precision", 0), -400), 400)
	method := a.text(1, "method", "common")
	i, whole := n.(int)
	scale := math.Pow(10, float64(precision))
	f := object.ToFloat(n)
	switch {
	case method == "ceil":
		return math.Ceil(f*scale) / scale
	case method == "floor":
		return math.Floor(f*scale) / scale
	case whole && precision >= 0:
		return i
	case precision >= 0: // the decimal that is nearest to the exact value
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		return f
	}
	f = math.RoundToEven(f*scale) / scale
	if whole {
		return int(f)
	}
	return f
}

func filterString(r *Run, in any, _ *Arguments) any { return r.TextOf(in).Value() }

func filterWordcount(r *Run, in any, _ *Arguments) any {
	s := r.Str(in)
	r.Scan(len(s))
	n := 0
	for range strings.FieldsFuncSeq(s, object.IsSpace) {
		n++
	}
	return n
}

func filterReverse(r *Run, in any, _ *Arguments) any {
	if object.IsText(in) {
		return r.Slice(in, [3]any{nil, nil, -1})
	}
	items := r.copy(r.Iterate(in))
	slices.Reverse(items)
	return &object.List{Items: items, Generator: true}
}

func filterJSON(r *Run, in any, a *Arguments) any {
	w := &object.JSONWriter{Builder: &object.Builder{Meter: &r.Meter}, Comma: ", ", Colon: ": "}
	w.ASCII, w.Sort = a.flag(0, "ensure_ascii", false), a.flag(3, "sort_keys", false)
	if indent, ok := a.Value(1, "indent"); ok && indent != nil {
		w.Lines, w.Comma = true, ","
		if pad, ok := object.Plain(indent); ok {
			w.Pad = pad
		} else {
			w.Pad = r.Repeat(" ", a.integer(1, "indent", 0))
		}
	}
	if separators, ok := a.Value(2, "separators"); ok && separators != nil {
		pair := r.Iterate(separators)
		if len(pair) != 2 {
			object.Fail("tojson needs a pair of separators")
		}
		w.Comma, w.Colon = r.Str(pair[0]), r.Str(pair[1])
	}
	w.Value(in, 0)
	return w.Text().Value()
}
