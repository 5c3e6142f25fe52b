package object

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Spec is a format specification of str.format or of the operator %.
type Spec struct {
	Fill      rune
	Align     byte // < > ^ =, 0: default of the type
	sign      byte // + or space, 0: only minus
	alternate bool
	Zero      bool
	Width     int
	grouping  string
	precision int // -1: not given
	verb      byte
}

// maxPrecision is more digits than any float has.
const maxPrecision = 1000

// ReadSpec parses [[fill]align][sign][#][0][width][,][.precision][verb].
func ReadSpec(s string) Spec {
	sp, whole := Spec{Fill: ' ', precision: -1}, s
	if n := ByteOffset(s, 1); len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.Fill, _ = utf8.DecodeRuneInString(s)
		sp.Align, s = s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.Align, s = s[0], s[1:]
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
	if next("0") != 0 && sp.Align == 0 {
		sp.Zero, sp.Fill, sp.Align = true, '0', '='
	}
	sp.Width, s = leadingNumber(s)
	if c := next(",_"); c != 0 {
		sp.grouping = string(c)
	}
	if next(".") != 0 {
		sp.precision, s = leadingNumber(s)
	}
	sp.verb = next("bcdeEfFgGnosxX%")
	if s != "" {
		Fail("invalid format specification %s", Clip(whole, 40))
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

// Formatted formats a value.
func (m *Meter) Formatted(sp Spec, v any) Text {
	n := Number(v)
	if _, isBool := v.(bool); n == nil || sp.verb == 's' || isBool && sp.verb == 0 {
		t := m.TextOf(v)
		if n == nil && sp.verb != 0 && sp.verb != 's' {
			Strict(v)
			Fail("cannot format a %s as %c", TypeName(v), sp.verb)
		}
		if sp.precision >= 0 {
			t = m.Cut(t, 0, ByteOffset(t.Plain, sp.precision))
		}
		if sp.Align == 0 {
			sp.Align = '<'
		}
		return m.Pad(sp, t)
	}
	if sp.precision > maxPrecision {
		m.stop("the template formats a number with more than %d digits", maxPrecision)
	}
	if sp.Align == 0 {
		sp.Align = '>'
	}
	i, whole := n.(int)
	if whole && strings.IndexByte("eEfFgG%", sp.verb) < 0 {
		return m.Pad(sp, Text{Plain: sp.integer(i)})
	}
	return m.Pad(sp, Text{Plain: sp.signed(sp.float(ToFloat(n)))})
}

func (sp Spec) signed(s string) string {
	if sp.sign != 0 && sp.sign != '-' && !strings.HasPrefix(s, "-") {
		return string(sp.sign) + s
	}
	return s
}

func (sp Spec) integer(n int) string {
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

func (sp Spec) float(f float64) string {
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
func (sp Spec) grouped(digits string) string {
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

// Pad fills t up to the width.
func (m *Meter) Pad(sp Spec, t Text) Text {
	lack := sp.Width - m.Runes(t.Plain)
	if lack <= 0 {
		return t
	}
	fill := Text{Plain: m.Repeat(string(sp.Fill), lack)}
	n := lack * utf8.RuneLen(sp.Fill)
	switch sp.Align {
	case '<':
		return m.Concat(t, fill)
	case '^':
		half := lack / 2 * utf8.RuneLen(sp.Fill)
		return m.Concat(m.Concat(m.Cut(fill, 0, half), t), m.Cut(fill, half, n))
	case '=':
		if t.Plain != "" && strings.IndexByte("+- ", t.Plain[0]) >= 0 {
			return m.Concat(m.Concat(m.Cut(t, 0, 1), fill), m.Cut(t, 1, len(t.Plain)))
		}
	}
	return m.Concat(fill, t)
}
