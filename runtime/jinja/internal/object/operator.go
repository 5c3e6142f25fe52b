package object

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Arithmetic returns x op y.
func (m *Meter) Arithmetic(op string, x, y any) any {
	Strict(x)
	Strict(y)
	a, b := Number(x), Number(y)
	if a != nil && b != nil {
		i, ok := a.(int)
		j, both := b.(int)
		if ok && both && op != "/" {
			return Integers(op, i, j)
		}
		return floats(op, ToFloat(a), ToFloat(b))
	}
	s, isText := AsText(x)
	l, isList := x.(*List)
	switch n, isInt := b.(int); {
	case op == "%" && isText:
		return m.Printf(s, y).Value()
	case op == "*" && isInt && isText:
		return m.repeatText(s, n).Value()
	case op == "*" && isInt && isList:
		return m.repeatList(l, n)
	case op == "*" && a != nil && b == nil:
		return m.Arithmetic(op, y, x)
	}
	if t, ok := AsText(y); ok && isText && op == "+" {
		return m.Concat(s, t).Value()
	}
	if k, ok := y.(*List); ok && isList && op == "+" && k.Tuple == l.Tuple {
		m.Items(len(l.Items) + len(k.Items))
		return &List{Items: slices.Concat(l.Items, k.Items), Tuple: l.Tuple}
	}
	Fail("cannot apply the operator %s to %s and %s", op, TypeName(x), TypeName(y))
	return nil
}

func (m *Meter) repeatList(l *List, n int) any {
	n = max(0, n)
	if len(l.Items) == 0 {
		n = 0
	} else if limit := m.Limits.Bytes / len(l.Items); n > limit {
		n = limit + 1
	}
	m.Items(n * len(l.Items))
	return &List{Items: slices.Repeat(l.Items, n), Tuple: l.Tuple}
}

// Integers computes with integers. Division rounds down as in Python. Overflow of 64 bits is an
// error.
func Integers(op string, a, b int) any {
	if b == 0 && (op == "//" || op == "%") {
		Fail("division by zero")
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
		Fail("integer overflow")
	}
	return c
}

func floats(op string, a, b float64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") || op == "**" && a == 0 && b < 0 {
		Fail("division by zero")
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

// Compare evaluates one comparison.
func (m *Meter) Compare(op string, a, b any) bool {
	switch op {
	case "==":
		return m.Equal(a, b)
	case "!=":
		return !m.Equal(a, b)
	case "in":
		return m.Contains(b, a)
	case "not in":
		return !m.Contains(b, a)
	}
	if x, y := Number(a), Number(b); x != nil && y != nil && (x != x || y != y) {
		return false // not a number
	}
	switch c := m.Order(a, b); op {
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

// Order returns a negative number if a sorts before b, 0 if they are equal, else a positive one.
func (m *Meter) Order(a, b any) int {
	m.Spend(1)
	Strict(a)
	Strict(b)
	if x, y := Number(a), Number(b); x != nil && y != nil {
		return compareNumbers(x, y)
	}
	switch a := a.(type) {
	case string, *Text:
		s, _ := Plain(a)
		if t, ok := Plain(b); ok {
			m.Scan(min(len(s), len(t)))
			return strings.Compare(s, t)
		}
	case *List:
		if b, ok := b.(*List); ok && a.Tuple == b.Tuple {
			m.Enter()
			defer m.Leave()
			for i := range min(len(a.Items), len(b.Items)) {
				if !m.Equal(a.Items[i], b.Items[i]) {
					return m.Order(a.Items[i], b.Items[i])
				}
			}
			return cmp.Compare(len(a.Items), len(b.Items))
		}
	}
	Fail("%s and %s cannot be compared", TypeName(a), TypeName(b))
	return 0
}

// repeatText returns n copies of t.
func (m *Meter) repeatText(t Text, n int) Text {
	if len(t.Spans) == 0 {
		return Text{Plain: m.Repeat(t.Plain, n)}
	}
	out := &Builder{Meter: m}
	for range n {
		out.WriteText(t)
	}
	return out.Text()
}
