package jinja

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// repeatText returns n copies of t.
func (m *meter) repeatText(t Text, n int) Text {
	if len(t.Spans) == 0 {
		return Text{Plain: m.repeat(t.Plain, n)}
	}
	out := &builder{m: m}
	for range n {
		out.writeText(t)
	}
	return out.text()
}

// repeat returns n copies of s.
func (m *meter) repeat(s string, n int) string {
	n = max(0, n)
	if s == "" {
		return ""
	}
	if n > m.limits.Text/len(s) {
		n = m.limits.Text/len(s) + 1
	}
	m.text(n * len(s))
	return strings.Repeat(s, n)
}

// arithmetic returns x op y.
func (r *run) arithmetic(op string, x, y any) any {
	strict(x)
	strict(y)
	a, b := number(x), number(y)
	if a != nil && b != nil {
		i, ok := a.(int)
		j, both := b.(int)
		if ok && both && op != "/" {
			return integers(op, i, j)
		}
		return floats(op, toFloat(a), toFloat(b))
	}
	s, isText := asText(x)
	l, isList := x.(*List)
	switch n, isInt := b.(int); {
	case op == "%" && isText:
		return r.printf(s, y).Value()
	case op == "*" && isInt && isText:
		return r.repeatText(s, n).Value()
	case op == "*" && isInt && isList:
		return r.repeatList(l, n)
	case op == "*" && a != nil && b == nil:
		return r.arithmetic(op, y, x)
	}
	if t, ok := asText(y); ok && isText && op == "+" {
		return r.concat(s, t).Value()
	}
	if k, ok := y.(*List); ok && isList && op == "+" && k.tuple == l.tuple {
		r.items(len(l.items) + len(k.items))
		return &List{slices.Concat(l.items, k.items), l.tuple}
	}
	fail("cannot apply the operator %s to %s and %s", op, typeName(x), typeName(y))
	return nil
}

func (m *meter) repeatList(l *List, n int) any {
	n = max(0, n)
	if len(l.items) == 0 {
		n = 0
	} else if most := m.limits.Bytes / len(l.items); n > most {
		n = most + 1
	}
	m.items(n * len(l.items))
	return &List{slices.Repeat(l.items, n), l.tuple}
}

func toFloat(n any) float64 {
	if i, ok := n.(int); ok {
		return float64(i)
	}
	return n.(float64)
}

// integers computes with integers. Division rounds down as in Python. Overflow of 64 bits is an
// error.
func integers(op string, a, b int) any {
	if b == 0 && (op == "//" || op == "%") {
		fail("division by zero")
	}
	ok, c := true, 0
	switch op {
	case "+":
		c = a + b
		ok = (c > a) == (b > 0)
	case "-":
		c = a - b
		ok = (c < a) == (b > 0)
	case "*":
		c = a * b
		ok = a == 0 || c/a == b && !(a == -1 && b == math.MinInt)
	case "//":
		c = a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			c--
		}
		ok = !(b == -1 && a == math.MinInt)
	case "%":
		if c = a % b; c != 0 && (c < 0) != (b < 0) {
			c += b
		}
	case "**":
		if b < 0 {
			return floats(op, float64(a), float64(b))
		}
		f := math.Pow(float64(a), float64(b))
		if ok = math.Abs(f) < 1<<53; ok {
			c = int(f)
		}
	}
	if !ok {
		fail("integer overflow")
	}
	return c
}

func floats(op string, a, b float64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") || op == "**" && a == 0 && b < 0 {
		fail("division by zero")
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	case "%":
		c := math.Mod(a, b)
		if c != 0 && (c < 0) != (b < 0) {
			c += b
		}
		return c
	}
	return math.Pow(a, b)
}

// compare evaluates one comparison.
func (m *meter) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return m.equal(a, b)
	case "!=":
		return !m.equal(a, b)
	case "in":
		return m.contains(b, a)
	case "not in":
		return !m.contains(b, a)
	}
	if x, y := number(a), number(b); x != nil && y != nil && (x != x || y != y) {
		return false // not a number
	}
	switch c := m.order(a, b); op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// order returns a negative number if a sorts before b, 0 if they are equal, else a positive one.
func (m *meter) order(a, b any) int {
	m.spend(1)
	strict(a)
	strict(b)
	if x, y := number(a), number(b); x != nil && y != nil {
		return compareNumbers(x, y)
	}
	switch a := a.(type) {
	case string, *Text:
		s, _ := plain(a)
		if t, ok := plain(b); ok {
			m.scan(min(len(s), len(t)))
			return strings.Compare(s, t)
		}
	case *List:
		if b, ok := b.(*List); ok && a.tuple == b.tuple {
			m.enter()
			defer m.leave()
			for i := range min(len(a.items), len(b.items)) {
				if !m.equal(a.items[i], b.items[i]) {
					return m.order(a.items[i], b.items[i])
				}
			}
			return cmp.Compare(len(a.items), len(b.items))
		}
	}
	fail("%s and %s cannot be compared", typeName(a), typeName(b))
	return 0
}

func compareNumbers(a, b any) int {
	i, ok := a.(int)
	j, both := b.(int)
	if ok && both {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(toFloat(a), toFloat(b))
}
