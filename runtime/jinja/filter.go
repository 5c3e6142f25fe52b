package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type filterFunc func(r *run, in any, a *arguments) any

// filters are set by init, as some of them call others by name.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"abs": filterAbs, "attr": filterAttr, "default": filterDefault, "d": filterDefault,
		"float": filterFloat, "int": filterInt, "round": filterRound, "tojson": filterJSON,

		"capitalize": onText(capitalize), "lower": onText(strings.ToLower), "title": onText(titleWords),
		"upper": onText(strings.ToUpper), "center": onMethod("center"), "replace": onMethod("replace"),
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

// filter applies a filter by its name.
func (r *run) filter(name string, in any, a *arguments) any {
	f, ok := filters[name]
	if !ok {
		fail("there is no filter %s", clip(name, 40))
	}
	a.who = name
	r.spend(1)
	return f(r, in, a)
}

// onText makes a filter of a function over text. Where it changes case the text may grow by half.
func onText(change func(string) string) filterFunc {
	return func(r *run, in any, _ *arguments) any {
		s := r.str(in)
		r.text(len(s) + len(s)/2)
		return change(s)
	}
}

// onMethod makes a filter of a method of strings.
func onMethod(name string) filterFunc {
	return func(r *run, in any, a *arguments) any { return stringMethods[name](r, r.str(in), a) }
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
	fail("abs takes a number")
	return nil
}

// filterAttr looks up attributes alone, not elements.
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
	s := r.str(in)
	r.text(len(s) + 4*strings.Count(s, "&") + 4*strings.Count(s, `"`) + 4*strings.Count(s, "'") +
		3*strings.Count(s, "<") + 3*strings.Count(s, ">"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func filterFloat(r *run, in any, a *arguments) any {
	if s, ok := in.(string); ok {
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
	switch v := in.(type) {
	case string:
		r.scan(len(v))
		s := strings.TrimFunc(v, isSpace)
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

// withoutPrefix fits a number to strconv, which knows prefixes only where the base is not given.
func withoutPrefix(s string, base int) (digits string, ofBase, bits int) {
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if n := len(prefix); n > 0 && len(s) > n && strings.EqualFold(s[:n], prefix) {
		s = s[n:]
	}
	return s, base, 64
}

// titleWords is the filter, whose words start after spaces, hyphens and brackets; the method's
// start after every non-letter.
func titleWords(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		starts := !inWord
		inWord = !isSpace(c) && !strings.ContainsRune("-({[<", c)
		if starts {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func filterFormat(r *run, in any, a *arguments) any {
	if len(a.named) > 0 {
		return r.printf(r.str(in), makeDict(r, a))
	}
	return r.printf(r.str(in), &List{a.positional, true})
}

// filterIndent indents all lines but the first, blank ones excepted, unless it is told otherwise.
func filterIndent(r *run, in any, a *arguments) any {
	pad := "    "
	if width, ok := a.value(0, "width"); ok {
		if s, isText := width.(string); isText {
			pad = s
		} else {
			pad = r.repeat(" ", a.integer(0, "width", 4))
		}
	}
	first, blank := a.flag(1, "first", false), a.flag(2, "blank", false)
	out := &builder{m: &r.meter}
	for i, rest := 0, r.str(in); ; i++ {
		line, after, more := strings.Cut(rest, "\n")
		if (i > 0 || first) && (line != "" || blank) {
			out.write(pad)
		}
		out.write(line)
		if !more {
			return out.String()
		}
		out.write("\n")
		rest = after
	}
}

func filterLength(r *run, in any, _ *arguments) any { return r.length(in) }

func filterRound(_ *run, in any, a *arguments) any {
	n := number(in)
	if n == nil {
		strict(in)
		fail("round takes a number")
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

func filterString(r *run, in any, _ *arguments) any { return r.str(in) }

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
	if s, ok := in.(string); ok {
		return r.slice(s, [3]any{nil, nil, -1})
	}
	items := r.copy(r.iterate(in))
	slices.Reverse(items)
	return &List{items: items}
}

// copy is a list of its own with the same elements.
func (m *meter) copy(items []any) []any {
	m.items(len(items))
	return slices.Clone(items)
}
