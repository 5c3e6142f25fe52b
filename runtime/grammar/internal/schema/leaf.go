package schema

import (
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
	"sandwich/runtime/grammar/internal/schema/document"
)

// texts returns the strings that the keywords of a schema allow.
func (c *compiler) texts(s *document.Value, path string) (t pattern.Texts, err error) {
	if t.Least, t.Most, err = document.Span(s, path, "minLength", "maxLength"); err != nil {
		return t, err
	}
	if p := s.Get("pattern"); p != nil {
		if p.Kind != document.KindString {
			return t, automaton.Refuse(document.Show(path)+"/pattern", "the value must be a string")
		}
		if _, err := c.Compiled(document.Show(path)+"/pattern", p.Text); err != nil {
			return t, err
		}
		t.Want = append(t.Want, p.Text)
	}
	if f := s.Get("format"); f != nil && f.Kind == document.KindString && document.Formats[f.Text] != "" {
		t.Want = append(t.Want, document.Formats[f.Text])
	}
	if more := s.Get(document.MoreTexts); more != nil {
		for _, x := range more.List {
			t.Want = append(t.Want, document.Expression(x, document.Formats))
		}
	}
	if never := s.Get(document.NeverTexts); never != nil {
		for _, x := range never.List {
			t.Unwanted = append(t.Unwanted, x.Text)
		}
	}
	return t, nil
}

func (c *compiler) stringType(s *document.Value, path string) (automaton.Expr, error) {
	t, err := c.texts(s, path)
	if err != nil {
		return nil, err
	}
	at := document.Show(path)
	switch {
	case len(t.Unwanted) > 0:
		return c.Product(at, t)
	case len(t.Want) == 0:
		return c.Text(t.Least, t.Most), nil
	case len(t.Want) > 1:
		return c.Product(at, t)
	case s.Get("pattern") != nil:
		at += "/pattern"
	case s.Get("format") != nil:
		at += "/format"
	}
	return c.Pattern(at, t.Want[0], t.Least, t.Most)
}

// maxMultiple is the largest supported divisor.
const maxMultiple = 4096

// maxDecimal is the largest supported divisor with a fraction, multiplied by a power of ten to a
// whole number.
const maxDecimal = 256

func (c *compiler) numberType(s *document.Value, path string, integer bool) (automaton.Expr, error) {
	n, err := c.bounds(s, path)
	if err != nil {
		return nil, err
	}
	n.Integer = n.Integer || integer
	switch {
	case n.None() && integer:
		return c.Integer(), nil
	case n.None():
		return c.Number(), nil
	}
	return n.Expr(document.Show(path))
}

// bounds returns the bounds of the keywords for numbers.
func (c *compiler) bounds(s *document.Value, path string) (n automaton.Bounds, err error) {
	s = s.WithExclusive()
	for _, k := range []struct {
		key   string
		lower bool
		open  bool
	}{{"minimum", true, false}, {"exclusiveMinimum", true, true}, {"maximum", false, false},
		{"exclusiveMaximum", false, true}} {
		v := s.Get(k.key)
		if v == nil {
			continue
		}
		if document.Outermost(v, k.lower) {
			x := new(big.Rat).SetInt(automaton.TenTo(automaton.BoundDigits))
			if x.Sub(x, big.NewRat(1, 1)); k.lower {
				x.Neg(x)
			}
			n.Tighten(x, k.lower, false)
			continue
		}
		x, ok := document.Rational(v)
		if tiny := smallest(v); tiny != 0 {
			x, ok = big.NewRat(int64(tiny), 1), true
			if x.Quo(x, new(big.Rat).SetInt(automaton.TenTo(automaton.BoundDigits))); (tiny > 0) != k.lower {
				x = new(big.Rat) // rounded inward to zero
			}
		}
		if !ok {
			return n, automaton.Refuse(document.Show(path)+"/"+k.key, "the value must be a number of at most %d digits",
				automaton.BoundDigits)
		}
		inner := inward(x, k.lower)
		n.Tighten(inner, k.lower, k.open && inner == x && smallest(v) == 0)
	}
	n.Multiple, n.Decimals, err = multipleOf(s, path)
	n.Integer = n.Multiple != nil && n.Decimals == 0 // multiples of a whole number are whole
	if list := s.Get(document.Remainders); list != nil && err == nil {
		err = divide(&n, list.List, path)
	}
	return n, err
}

// divide adds remainders. The divisors must have a small common multiple.
func divide(n *automaton.Bounds, list []*document.Value, path string) error {
	if n.Decimals > 0 {
		return automaton.Refuse(document.Show(path),
			"excluded multiples are supported for whole numbers only, not together with a "+
				"multipleOf that has a fraction")
	}
	if n.Integer = true; n.Multiple == nil {
		n.Multiple = big.NewInt(1)
	}
	n.Rests = []automaton.Remainder{{By: n.Multiple.Int64()}}
	for _, x := range list {
		by, _, err := multipleOf(document.OneMember("multipleOf", x.List[0]), path)
		if err != nil {
			return err
		}
		rest, _ := strconv.ParseInt(x.List[1].Text, 10, 64)
		n.Rests = append(n.Rests, automaton.Remainder{By: by.Int64(), Rest: rest, Not: x.List[2].IsFalse()})
		if n.Multiple = lcm(n.Multiple, by); n.Multiple.Cmp(big.NewInt(maxMultiple)) > 0 {
			return automaton.Refuse(document.Show(path), "the divisors have no common multiple up to %d",
				maxMultiple)
		}
	}
	return nil
}

// lcm returns the least common multiple.
func lcm(a, b *big.Int) *big.Int {
	return new(big.Int).Div(new(big.Int).Mul(a, b), new(big.Int).GCD(nil, nil, a, b))
}

// smallest returns the sign of a bound that is nearer to zero than any number that is generated, or
// 0.
func smallest(v *document.Value) int {
	f, err := strconv.ParseFloat(v.Text, 64)
	switch {
	case v.Kind != document.KindNumber || err != nil || f == 0 || f >= 1e-18 || f <= -1e-18:
		return 0
	case f > 0:
		return 1
	}
	return -1
}

// inward rounds a bound inward to boundDigits fraction digits.
func inward(x *big.Rat, lower bool) *big.Rat {
	if n, exact := x.FloatPrec(); exact && n <= automaton.BoundDigits {
		return x
	}
	scale := automaton.TenTo(automaton.BoundDigits)
	whole, rest := new(big.Int).DivMod(new(big.Int).Mul(x.Num(), scale), x.Denom(), new(big.Int))
	if lower && rest.Sign() != 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(whole, scale)
}

// multipleOf returns the divisor of multipleOf: of divided by 10^decimals.
func multipleOf(s *document.Value, path string) (of *big.Int, decimals int, err error) {
	v := s.Get("multipleOf")
	if v == nil {
		return nil, 0, nil
	}
	x, ok := document.Rational(v)
	if ok && x.Sign() > 0 {
		n, exact := x.FloatPrec()
		whole := new(big.Rat).Mul(x, new(big.Rat).SetInt(automaton.TenTo(n)))
		limit := int64(maxMultiple)
		if n > 0 {
			limit = maxDecimal
		}
		if exact && n <= automaton.FractionDigits && whole.Num().Cmp(big.NewInt(limit)) <= 0 {
			return whole.Num(), n, nil
		}
	}
	return nil, 0, automaton.Refuse(document.Show(path)+"/multipleOf",
		"supported are whole numbers from 1 to %d, and decimal numbers with "+
			"digits up to %d", maxMultiple, maxDecimal)
}

// hasText reports whether a string is in t. The expressions of t must have been parsed.
func (c *compiler) hasText(t pattern.Texts, s string) bool {
	n := utf8.RuneCountInString(s)
	if n < t.Least || t.Most >= 0 && n > t.Most {
		return false
	}
	for _, p := range t.Want {
		if !c.Matches(p, s, false) {
			return false
		}
	}
	return !slices.ContainsFunc(t.Unwanted, func(p string) bool { return c.Matches(p, s, true) })
}

// wideTexts returns a superset of the strings that the keywords of a schema allow: with formats as
// any reader accepts them. texts returns a subset.
func (c *compiler) wideTexts(s *document.Value, path string) (pattern.Texts, error) {
	t, err := c.texts(s.But("format").But(document.MoreTexts), path)
	if f := s.Get("format"); f != nil && document.WideFormats[f.Text] != "" {
		t.Want = append(t.Want, document.WideFormats[f.Text])
	}
	if more := s.Get(document.MoreTexts); more != nil {
		for _, x := range more.List {
			if text := document.Expression(x, document.WideFormats); text != "" {
				t.Want = append(t.Want, text)
			}
		}
	}
	return t, err
}
