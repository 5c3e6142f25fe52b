package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification of str.format or of the operator %.
type spec struct {
	fill      rune
	align     byte // < > ^ =, 0: default of the type
	sign      byte // + or space, 0: only minus
	alternate bool
	zero      bool
	width     int
	grouping  string
	precision int // -1: not given
	verb      byte
}

// maxPrecision is more digits than any float has.
const maxPrecision = 1000

// readSpec parses [[fill]align][sign][#][0][width][,][.precision][verb].
func readSpec(s string) spec {
	sp, whole := spec{fill: ' ', precision: -1}, s
	if n := byteOffset(s, 1); len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.fill, _ = utf8.DecodeRuneInString(s)
		sp.align, s = s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	next := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	sp.sign = next("+- ")
	sp.alternate = next("#") != 0
	if next("0") != 0 && sp.align == 0 {
		sp.zero, sp.fill, sp.align = true, '0', '='
	}
	sp.width, s = leadingNumber(s)
	if c := next(",_"); c != 0 {
		sp.grouping = string(c)
	}
	if next(".") != 0 {
		sp.precision, s = leadingNumber(s)
	}
	sp.verb = next("bcdeEfFgGnosxX%")
	if s != "" {
		fail("invalid format specification %s", clip(whole, 40))
	}
	return sp
}

// leadingNumber parses the digits at the start of s and returns the rest. It clips large numbers.
func leadingNumber(s string) (n int, rest string) {
	for s != "" && s[0] >= '0' && s[0] <= '9' {
		n = min(n*10+int(s[0]-'0'), math.MaxInt32)
		s = s[1:]
	}
	return n, s
}

// formatted formats a value.
func (r *run) formatted(sp spec, v any) Text {
	n := number(v)
	if _, isBool := v.(bool); n == nil || sp.verb == 's' || isBool && sp.verb == 0 {
		t := r.textOf(v)
		if n == nil && sp.verb != 0 && sp.verb != 's' {
			strict(v)
			fail("cannot format a %s as %c", typeName(v), sp.verb)
		}
		if sp.precision >= 0 {
			t = r.cut(t, 0, byteOffset(t.Plain, sp.precision))
		}
		if sp.align == 0 {
			sp.align = '<'
		}
		return r.pad(sp, t)
	}
	if sp.precision > maxPrecision {
		r.stop("the template formats a number with more than %d digits", maxPrecision)
	}
	if sp.align == 0 {
		sp.align = '>'
	}
	i, whole := n.(int)
	if whole && strings.IndexByte("eEfFgG%", sp.verb) < 0 {
		return r.pad(sp, Text{Plain: sp.integer(i)})
	}
	return r.pad(sp, Text{Plain: sp.signed(sp.float(toFloat(n)))})
}

func (sp spec) signed(s string) string {
	if sp.sign != 0 && sp.sign != '-' && !strings.HasPrefix(s, "-") {
		return string(sp.sign) + s
	}
	return s
}

func (sp spec) integer(n int) string {
	prefix, base := "", 10
	switch sp.verb {
	case 'b':
		prefix, base = "0b", 2
	case 'o':
		prefix, base = "0o", 8
	case 'x', 'X':
		prefix, base = "0x", 16
	case 'c':
		return string(rune(n))
	}
	s := strconv.FormatInt(int64(n), base)
	minus := strings.HasPrefix(s, "-")
	s = sp.grouped(strings.TrimPrefix(s, "-"))
	if sp.alternate {
		s = prefix + s
	}
	if sp.verb == 'X' {
		s = strings.ToUpper(s)
	}
	if minus {
		s = "-" + s
	}
	return sp.signed(s)
}

func (sp spec) float(f float64) string {
	precision := sp.precision
	if precision < 0 {
		precision = 6
	}
	verb, suffix := sp.verb, ""
	switch verb {
	case 0, 'd', 'n':
		if sp.precision < 0 {
			return floatText(f)
		}
		verb = 'g'
	case '%':
		verb, suffix, f = 'f', "%", f*100
	case 'F':
		verb = 'f'
	}
	if verb == 'g' || verb == 'G' {
		precision = max(1, precision)
	}
	s := strconv.FormatFloat(f, verb, precision, 64)
	if verb == 'g' || verb == 'G' {
		s = shortest(s, f, precision, verb)
	}
	head, tail, found := strings.Cut(s, ".")
	minus := strings.HasPrefix(head, "-")
	if head = sp.grouped(strings.TrimPrefix(head, "-")); minus {
		head = "-" + head
	}
	if found {
		head += "." + tail
	}
	return head + suffix
}

// shortest formats like %g in C: Go changes to exponents at 21 digits, C at the precision.
func shortest(s string, f float64, precision int, verb byte) string {
	exponent := 0
	if f != 0 {
		exponent, _ = strconv.Atoi(strings.ToLower(strconv.FormatFloat(f, 'e', precision-1, 64))[strings.IndexByte(
			strconv.FormatFloat(f, 'e', precision-1, 64), 'e')+1:])
	}
	if exponent < -4 || exponent >= precision {
		return s
	}
	s = strconv.FormatFloat(f, 'f', max(0, precision-1-exponent), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// grouped inserts the separator between thousands.
func (sp spec) grouped(digits string) string {
	if sp.grouping == "" {
		return digits
	}
	var out strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteString(sp.grouping)
		}
		out.WriteRune(c)
	}
	return out.String()
}

// pad fills t up to the width.
func (m *meter) pad(sp spec, t Text) Text {
	lack := sp.width - m.runes(t.Plain)
	if lack <= 0 {
		return t
	}
	fill := Text{Plain: m.repeat(string(sp.fill), lack)}
	n := lack * utf8.RuneLen(sp.fill)
	switch sp.align {
	case '<':
		return m.concat(t, fill)
	case '^':
		half := lack / 2 * utf8.RuneLen(sp.fill)
		return m.concat(m.concat(m.cut(fill, 0, half), t), m.cut(fill, half, n))
	case '=':
		if t.Plain != "" && strings.IndexByte("+- ", t.Plain[0]) >= 0 {
			return m.concat(m.concat(m.cut(t, 0, 1), fill), m.cut(t, 1, len(t.Plain)))
		}
	}
	return m.concat(fill, t)
}
