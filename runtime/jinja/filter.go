package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type filterFunc func(r *run, in any, a *arguments) any

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
		"reverse": filterReverse, "unique": filterUnique, "groupby": filterGroupby, "join": filterJoin,
		"map": filterMap, "sum": filterSum, "max": extreme(1), "min": extreme(-1),
		"select": choose(true, false), "selectattr": choose(true, true),
		"reject": choose(false, false), "rejectattr": choose(false, true),
	}
}

// filter applies the filter with the given name.
func (r *run) filter(name string, in any, a *arguments) any {
	f, ok := filters[name]
	if !ok {
		fail("unknown filter %s", clip(name, 40))
	}
	a.who = name
	r.spend(1)
	return f(r, in, a)
}

// onRunes returns a filter that maps characters. It calls start for each text to get the mapping. A
// change of case makes a text at most half as long again.
func onRunes(start func() func(rune) rune) filterFunc {
	return func(r *run, in any, _ *arguments) any {
		t := r.textOf(in)
		r.text(len(t.Plain) + len(t.Plain)/2)
		r.take(len(t.Spans) * spanBytes)
		return mapRunes(t, start()).Value()
	}
}

// onMethod returns a filter that calls a method of strings.
func onMethod(name string) filterFunc {
	return func(r *run, in any, a *arguments) any { return stringMethods[name](r, r.textOf(in), a) }
}

func filterAbs(r *run, in any, _ *arguments) any {
	switch n := number(in).(type) {
	case int:
		if n < 0 {
			return integers("-", 0, n)
		}
		return n
	case float64:
		return math.Abs(n)
	}
	strict(in)
	fail("abs needs a number")
	return nil
}

// filterAttr returns an attribute, but never an element of a mapping.
func filterAttr(r *run, in any, a *arguments) any {
	name := a.text(0, "name", "")
	if _, ok := in.(*Dict); ok && method(in, name) == nil {
		return undefined("a dict has no attribute '" + name + "'")
	}
	return r.attribute(in, name)
}

func filterDefault(_ *run, in any, a *arguments) any {
	if _, missing := in.(undefined); missing || a.flag(1, "boolean", false) && !truth(in) {
		if v, ok := a.value(0, "default_value"); ok {
			return v
		}
		return ""
	}
	return in
}

func filterEscape(r *run, in any, _ *arguments) any {
	out := &builder{m: &r.meter}
	out.escape(r.textOf(in), &htmlEscapes)
	return out.text().Value()
}

var htmlEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '\'': "&#39;", '"': "&#34;"}

func filterFloat(r *run, in any, a *arguments) any {
	if s, ok := plain(in); ok {
		r.scan(len(s))
		if f, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64); err == nil {
			return f
		}
	} else if n := number(in); n != nil {
		return toFloat(n)
	}
	if v, ok := a.value(0, "default"); ok {
		return v
	}
	return 0.0
}

func filterInt(r *run, in any, a *arguments) any {
	const past = 1 << 62
	f := math.NaN()
	switch in.(type) {
	case string, *Text:
		text := r.str(in)
		r.scan(len(text))
		s := strings.TrimFunc(text, isSpace)
		if n, err := strconv.ParseInt(withoutPrefix(s, a.integer(1, "base", 10))); err == nil {
			return int(n)
		}
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			f = x
		}
	default:
		switch n := number(in).(type) {
		case int:
			return n
		case float64:
			f = n
		}
	}
	if math.Abs(f) < past {
		return int(f)
	}
	if v, ok := a.value(0, "default"); ok {
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

// titleWords maps characters for the filter title, whose words start after spaces, hyphens and
// brackets. For the method title, words start after any non-letter.
func titleWords() func(rune) rune {
	return capitals(func(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) })
}

// capitals returns a mapping that raises the first character and those after separators, and lowers
// all others.
func capitals(separates func(rune) bool) func(rune) rune {
	starts := true
	return func(c rune) rune {
		first := starts
		if starts = separates(c); first {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}
}

func upper() func(rune) rune { return unicode.ToUpper }

func lower() func(rune) rune { return unicode.ToLower }

// capitalize returns a mapping that raises the first character and lowers all others.
func capitalize() func(rune) rune {
	return capitals(func(rune) bool { return false })
}

func filterFormat(r *run, in any, a *arguments) any {
	if len(a.named) > 0 {
		return r.printf(r.textOf(in), makeDict(r, a)).Value()
	}
	return r.printf(r.textOf(in), &List{a.positional, true}).Value()
}

// filterIndent indents lines. By default it skips the first line and blank lines.
func filterIndent(r *run, in any, a *arguments) any {
	pad := "    "
	if width, ok := a.value(0, "width"); ok {
		if s, isText := plain(width); isText {
			pad = s
		} else {
			pad = r.repeat(" ", a.integer(0, "width", 4))
		}
	}
	first, blank := a.flag(1, "first", false), a.flag(2, "blank", false)
	out := &builder{m: &r.meter}
	t, from := r.textOf(in), 0
	for i := 0; ; i++ {
		line, _, more := strings.Cut(t.Plain[from:], "\n")
		if (i > 0 || first) && (line != "" || blank) {
			out.write(pad)
		}
		end := from + len(line)
		if !more {
			out.writePart(t, from, end)
			return out.text().Value()
		}
		out.writePart(t, from, end+1)
		from = end + 1
	}
}

func filterLength(r *run, in any, _ *arguments) any { return r.length(in) }

func filterRound(_ *run, in any, a *arguments) any {
	n := number(in)
	if n == nil {
		strict(in)
		fail("round needs a number")
	}
	scale := math.Pow(10, float64(a.integer(0, "precision", 0)))
	f := toFloat(n) * scale
	switch a.text(1, "method", "common") {
	case "ceil":
		f = math.Ceil(f)
	case "floor":
		f = math.Floor(f)
	default:
		f = math.RoundToEven(f)
	}
	if _, whole := n.(int); whole && scale >= 1 {
		return n
	}
	return f / scale
}

func filterString(r *run, in any, _ *arguments) any { return r.textOf(in).Value() }

func filterWordcount(r *run, in any, _ *arguments) any {
	s := r.str(in)
	r.scan(len(s))
	n := 0
	for range strings.FieldsFuncSeq(s, isSpace) {
		n++
	}
	return n
}

func filterReverse(r *run, in any, _ *arguments) any {
	if isText(in) {
		return r.slice(in, [3]any{nil, nil, -1})
	}
	items := r.copy(r.iterate(in))
	slices.Reverse(items)
	return &List{items: items}
}

// copy returns a copy of items.
func (m *meter) copy(items []any) []any {
	m.items(len(items))
	return slices.Clone(items)
}
