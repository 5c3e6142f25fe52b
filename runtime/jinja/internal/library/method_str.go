package library

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sandwich/runtime/jinja/internal/object"
)

// stringMethod is a method of Python's str. The caller has charged for reading self; the method
// charges for its result.
type stringMethod func(r *Run, self object.Text, a *Arguments) any

// stringMethods is set by init, because format looks up attributes, which may be methods.
var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"capitalize": changed(capitalize), "title": changed(title), "lower": changed(lower),
		"upper": changed(upper), "casefold": changed(lower), "swapcase": changed(swapCase),

		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"split": split, "rsplit": rsplit, "splitlines": splitLines,
		"partition": partition(strings.Index, false), "rpartition": partition(strings.LastIndex, true),
		"removeprefix": func(r *Run, t object.Text, a *Arguments) any {
			rest, found := strings.CutPrefix(t.Plain, a.text(0, "prefix", ""))
			return r.removed(t, len(t.Plain)-len(rest), len(t.Plain), found).Value()
		},
		"removesuffix": func(r *Run, t object.Text, a *Arguments) any {
			rest, found := strings.CutSuffix(t.Plain, a.text(0, "suffix", ""))
			return r.removed(t, 0, len(rest), found).Value()
		},
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),

		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count": ask(func(r *Run, s string, a *Arguments) any {
			from, to, ok := r.window(s, a)
			if !ok {
				return 0
			}
			return strings.Count(s[from:to], a.text(0, "sub", ""))
		}),
		"replace": replace,
		"join": func(r *Run, t object.Text, a *Arguments) any {
			values := r.Iterate(a.need(0, "iterable"))
			for _, v := range values {
				if object.Strict(v); !object.IsText(v) {
					object.Fail("join needs strings, not a %s", object.TypeName(v))
				}
			}
			return r.join(t, values).Value()
		},
		"format": func(r *Run, t object.Text, a *Arguments) any { return r.format(t, a).Value() },

		"center": pad(func(n, width int) int { return n/2 + n&width&1 }),
		"ljust":  pad(func(int, int) int { return 0 }), "rjust": pad(func(n, _ int) int { return n }),
		"zfill": func(r *Run, t object.Text, a *Arguments) any {
			return r.Pad(object.Spec{Fill: '0', Zero: true, Align: '=', Width: a.integer(0, "width", 0)}, t).Value()
		},

		"isalpha": every(unicode.IsLetter), "isdigit": every(unicode.IsDigit), "isdecimal": every(unicode.IsDigit),
		"isnumeric": every(unicode.IsNumber), "isspace": every(object.IsSpace),
		"isalnum": every(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isascii": ask(func(_ *Run, s string, _ *Arguments) any {
			return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
		}),
		"islower": ask(func(r *Run, s string, _ *Arguments) any {
			return r.cased(s, unicode.IsUpper, unicode.IsLower)
		}),
		"isupper": ask(func(r *Run, s string, _ *Arguments) any {
			return r.cased(s, unicode.IsLower, unicode.IsUpper)
		}),
		"istitle": ask(func(r *Run, s string, a *Arguments) any {
			r.Text(2 * len(s))
			return s != "" && strings.Map(title(), s) == s
		}),
	}
}

// ask returns a method that only reads the text.
func ask(about func(r *Run, s string, a *Arguments) any) stringMethod {
	return func(r *Run, self object.Text, a *Arguments) any { return about(r, self.Plain, a) }
}

func changed(start func() func(rune) rune) stringMethod {
	return func(r *Run, self object.Text, a *Arguments) any { return onRunes(start)(r, self.Value(), a) }
}

func title() func(rune) rune {
	return capitals(func(c rune) bool { return !unicode.IsLetter(c) })
}

func swapCase() func(rune) rune {
	return func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}
}

// removed returns the bytes [from, to) of a text. If found, the template contains the other bytes.
func (r *Run) removed(t object.Text, from, to int, found bool) object.Text {
	if found {
		r.Found(t, object.Text{Plain: t.Plain[:from] + t.Plain[to:]})
	}
	return r.Cut(t, from, to)
}

// strip returns a method that removes white space, or the given characters, at the ends of a text.
func strip(left, right bool) stringMethod {
	return func(r *Run, t object.Text, a *Arguments) any {
		drop := object.IsSpace
		if v, ok := a.Value(0, "chars"); ok && v != nil {
			chars := a.text(0, "chars", "")
			drop = func(c rune) bool { r.Scan(len(chars)); return strings.ContainsRune(chars, c) }
		}
		from, to := 0, len(t.Plain)
		if left {
			from = to - len(strings.TrimLeftFunc(t.Plain, drop))
		}
		if right {
			to = from + len(strings.TrimRightFunc(t.Plain[from:], drop))
		}
		return r.Cut(t, from, to).Value()
	}
}

func affix(has func(s, affix string) bool) stringMethod {
	return func(r *Run, t object.Text, a *Arguments) any {
		parts := []any{a.need(0, "prefix")}
		if l, ok := parts[0].(*object.List); ok {
			parts = l.Items
		} else {
			a.text(0, "prefix", "") // must be a string
		}
		from, to, inside := r.window(t.Plain, a)
		for _, v := range parts {
			r.Spend(1)
			if part, ok := object.AsText(v); ok && inside && has(t.Plain[from:to], part.Plain) {
				r.Found(t, part)
				return true
			}
		}
		return false
	}
}

func find(index func(s, sub string) int, must bool) stringMethod {
	return ask(func(r *Run, s string, a *Arguments) any {
		sub := a.text(0, "sub", "")
		from, to, ok := r.window(s, a)
		at := -1
		if ok {
			at = index(s[from:to], sub)
		}
		if at < 0 {
			if must {
				object.Fail("the substring is not found")
			}
			return -1
		}
		return utf8.RuneCountInString(s[:from+at])
	})
}

// window returns the bytes of s between the characters that the arguments start and end name. ok is
// false if start is after the end.
func (r *Run) window(s string, a *Arguments) (from, to int, ok bool) {
	if len(a.Positional) < 2 {
		return 0, len(s), true
	}
	n := r.Runes(s)
	bound := func(i int, name string, otherwise int) int {
		at := a.integer(i, name, otherwise)
		if at < 0 {
			at += n
		}
		return max(at, 0)
	}
	start, end := bound(1, "start", 0), min(bound(2, "end", n), n)
	if start > end {
		return 0, 0, false
	}
	r.Scan(8 * len(s))
	from = object.ByteOffset(s, start)
	return from, from + object.ByteOffset(s[from:], end-start), true
}

func replace(r *Run, t object.Text, a *Arguments) any {
	old, by, limit := r.TextOf(a.need(0, "old")), r.TextOf(a.need(1, "new")), a.integer(2, "count", -1)
	s, from, to := t.Plain, old.Plain, by.Plain
	r.Scan(len(s))
	count := strings.Count(s, from)
	if limit >= 0 {
		count = min(count, limit)
	}
	if count == 0 {
		return t.Value()
	}
	r.Found(t, old)
	grow := len(to) - len(from)
	if grow > 0 && count > r.Limits.Text/grow {
		r.Text(r.Limits.Text + 1)
	}
	r.Text(len(s) + count*grow)
	if len(t.Spans)+len(by.Spans) == 0 {
		return strings.Replace(s, from, to, count)
	}
	return r.replaceText(t, from, by, count).Value()
}

// replaceText replaces the first count occurrences of old, as strings.Replace does.
func (r *Run) replaceText(t object.Text, old string, by object.Text, count int) object.Text {
	out := &object.Builder{Meter: &r.Meter}
	from := 0
	for i := range count {
		at := from
		switch {
		case old != "":
			at += strings.Index(t.Plain[from:], old)
		case i > 0: // after the next character
			_, size := utf8.DecodeRuneInString(t.Plain[from:])
			at += size
		}
		out.WritePart(t, from, at)
		out.WriteText(by)
		from = at + len(old)
	}
	out.WritePart(t, from, len(t.Plain))
	return out.Text()
}

func every(is func(rune) bool) stringMethod {
	return ask(func(_ *Run, s string, _ *Arguments) any {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
	})
}

// pad returns a method that fills a text up to a width. left returns the number of missing
// characters to add on the left.
func pad(left func(lack, width int) int) stringMethod {
	return func(r *Run, t object.Text, a *Arguments) any {
		fill := a.text(1, "fillchar", " ")
		if utf8.RuneCountInString(fill) != 1 {
			object.Fail("%s needs one fill character", a.Who)
		}
		width := a.integer(0, "width", 80)
		lack := max(0, width-utf8.RuneCountInString(t.Plain))
		before := left(lack, width)
		front := r.Concat(object.Text{Plain: r.Repeat(fill, before)}, t)
		return r.Concat(front, object.Text{Plain: r.Repeat(fill, lack-before)}).Value()
	}
}

// cased implements Python's islower and isupper: v has letters of one case and none of the other.
func (r *Run) cased(v any, not, is func(rune) bool) bool {
	s := r.Str(v)
	r.Scan(len(s))
	return strings.IndexFunc(s, not) < 0 && strings.IndexFunc(s, is) >= 0
}
