package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethod is a method of Python's str. Reading self is paid for before; what it makes is not.
type stringMethod func(r *run, self string, a *arguments) any

// stringMethods are set by init, as format looks up attributes, which may be methods.
var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"capitalize": changed(capitalize), "title": changed(title),
		"lower": changed(strings.ToLower), "upper": changed(strings.ToUpper), "casefold": changed(strings.ToLower),
		"swapcase": changed(func(s string) string { return strings.Map(swapCase, s) }),

		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"split": split, "rsplit": rsplit, "splitlines": splitLines,
		"partition": partition(strings.Index, false), "rpartition": partition(strings.LastIndex, true),
		"removeprefix": func(_ *run, s string, a *arguments) any {
			return strings.TrimPrefix(s, a.text(0, "prefix", ""))
		},
		"removesuffix": func(_ *run, s string, a *arguments) any {
			return strings.TrimSuffix(s, a.text(0, "suffix", ""))
		},
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),

		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"count":   func(_ *run, s string, a *arguments) any { return strings.Count(s, a.text(0, "sub", "")) },
		"replace": replace,
		"join": func(r *run, s string, a *arguments) any {
			values := r.iterate(a.need(0, "iterable"))
			for _, v := range values {
				if strict(v); !isA[string](v) {
					fail("join takes strings, not a %s", typeName(v))
				}
			}
			return r.join(s, values)
		},
		"format": func(r *run, s string, a *arguments) any { return r.format(s, a) },

		"center": pad(func(n, width int) int { return n/2 + n&width&1 }),
		"ljust":  pad(func(int, int) int { return 0 }), "rjust": pad(func(n, _ int) int { return n }),
		"zfill": func(r *run, s string, a *arguments) any {
			return r.pad(spec{fill: '0', zero: true, align: '=', width: a.integer(0, "width", 0)}, s)
		},

		"isalpha": every(unicode.IsLetter), "isdigit": every(unicode.IsDigit), "isdecimal": every(unicode.IsDigit),
		"isnumeric": every(unicode.IsNumber), "isspace": every(isSpace),
		"isalnum": every(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isascii": func(_ *run, s string, _ *arguments) any {
			return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
		},
		"islower": func(r *run, s string, _ *arguments) any { return r.cased(s, unicode.IsUpper, unicode.IsLower) },
		"isupper": func(r *run, s string, _ *arguments) any { return r.cased(s, unicode.IsLower, unicode.IsUpper) },
		"istitle": func(r *run, s string, a *arguments) any { r.text(2 * len(s)); return s != "" && title(s) == s },
	}
}

func changed(change func(string) string) stringMethod {
	return func(r *run, self string, a *arguments) any { return onText(change)(r, self, a) }
}

func capitalize(s string) string {
	n := byteOffset(s, 1)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

func title(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		starts := !inWord
		inWord = unicode.IsLetter(c)
		if starts {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func swapCase(c rune) rune {
	if unicode.IsUpper(c) {
		return unicode.ToLower(c)
	}
	return unicode.ToUpper(c)
}

// strip removes white space, or the given characters, at the ends.
func strip(left, right bool) stringMethod {
	return func(r *run, s string, a *arguments) any {
		drop := isSpace
		if v, ok := a.value(0, "chars"); ok && v != nil {
			chars := a.text(0, "chars", "")
			drop = func(c rune) bool { r.scan(len(chars)); return strings.ContainsRune(chars, c) }
		}
		if left {
			s = strings.TrimLeftFunc(s, drop)
		}
		if right {
			s = strings.TrimRightFunc(s, drop)
		}
		return s
	}
}

func affix(has func(s, affix string) bool) stringMethod {
	return func(r *run, s string, a *arguments) any {
		v := a.need(0, "prefix")
		if l, ok := v.(*List); ok {
			for _, item := range l.items {
				r.spend(1)
				if part, ok := item.(string); ok && has(s, part) {
					return true
				}
			}
			return false
		}
		return has(s, a.text(0, "prefix", ""))
	}
}

func find(index func(s, sub string) int, must bool) stringMethod {
	return func(_ *run, s string, a *arguments) any {
		sub := a.text(0, "sub", "")
		from := byteOffset(s, max(0, a.integer(1, "start", 0)))
		at := index(s[from:], sub)
		if at < 0 {
			if must {
				fail("the text is not found")
			}
			return -1
		}
		return utf8.RuneCountInString(s[:from+at])
	}
}

func replace(r *run, s string, a *arguments) any {
	old, by, most := a.need(0, "old"), a.need(1, "new"), a.integer(2, "count", -1)
	from, to := r.str(old), r.str(by)
	r.scan(len(s))
	found := strings.Count(s, from)
	if most >= 0 {
		found = min(found, most)
	}
	if found == 0 {
		return s
	}
	grow := len(to) - len(from)
	if grow > 0 && found > r.limits.Text/grow {
		r.text(r.limits.Text + 1)
	}
	r.text(len(s) + found*grow)
	return strings.Replace(s, from, to, found)
}

func every(is func(rune) bool) stringMethod {
	return func(_ *run, s string, _ *arguments) any {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
	}
}

// pad fills up to a width; left says how many of the characters that lack go in front.
func pad(left func(lack, width int) int) stringMethod {
	return func(r *run, s string, a *arguments) any {
		fill := a.text(1, "fillchar", " ")
		if utf8.RuneCountInString(fill) != 1 {
			fail("%s takes one character to fill with", a.who)
		}
		width := a.integer(0, "width", 80)
		lack := max(0, width-utf8.RuneCountInString(s))
		before := left(lack, width)
		return r.concat(r.concat(r.repeat(fill, before), s), r.repeat(fill, lack-before))
	}
}
