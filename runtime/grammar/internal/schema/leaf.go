package schema

import (
	"math/big"
	"regexp"
	"strconv"

	"sandwich/runtime/grammar/internal/automaton"
	"sandwich/runtime/grammar/internal/pattern"
)

// count returns the value of a counting keyword, or missing if it is absent.
func count(s *value, path, key string, missing int) (int, error) {
	v := s.get(key)
	if v == nil {
		return missing, nil
	}
	x, ok := new(big.Rat).SetString(v.text)
	if v.kind != kindNumber || len(v.text) > 30 || !ok || !x.IsInt() || x.Sign() < 0 {
		return 0, automaton.Refuse(show(path)+"/"+key, "the value must be a whole number of at least 0")
	}
	if !x.Num().IsInt64() || x.Num().Int64() > automaton.MaxCount {
		if missing >= 0 {
			return 0, automaton.Refuse(show(path)+"/"+key, "%s is above the limit of %d", automaton.Clip(v.text),
				automaton.MaxCount)
		}
		return -1, nil // an upper bound that is never reached
	}
	return int(x.Num().Int64()), nil
}

// span returns a pair of keywords for a lower and an upper bound; hi is -1 for no limit.
func span(s *value, path, least, most string) (lo, hi int, err error) {
	if lo, err = count(s, path, least, 0); err != nil {
		return 0, 0, err
	}
	if hi, err = count(s, path, most, -1); err != nil {
		return 0, 0, err
	}
	if hi >= 0 && lo > hi {
		return 0, 0, automaton.Unsatisfied(show(path)+"/"+most, "%s is %d", least, lo)
	}
	return lo, hi, nil
}

// moreTexts is a keyword of merged schemas: further expressions that must match.
const moreTexts = "!texts"

// neverTexts is a keyword of negated schemas: expressions that must not match.
const neverTexts = "!never"

// exactly returns the expression for one string.
func exactly(s string) string { return "^(?:" + regexp.QuoteMeta(s) + ")$" }

// texts returns the strings that the keywords of a schema allow.
func (c *compiler) texts(s *value, path string) (t pattern.Texts, err error) {
	if t.Least, t.Most, err = span(s, path, "minLength", "maxLength"); err != nil {
		return t, err
	}
	if p := s.get("pattern"); p != nil {
		if p.kind != kindString {
			return t, automaton.Refuse(show(path)+"/pattern", "the value must be a string")
		}
		if _, err := c.Compiled(show(path)+"/pattern", p.text); err != nil {
			return t, err
		}
		t.Want = append(t.Want, p.text)
	}
	if f := s.get("format"); f != nil && f.kind == kindString && formats[f.text] != "" {
		t.Want = append(t.Want, formats[f.text])
	}
	if more := s.get(moreTexts); more != nil {
		for _, x := range more.list {
			t.Want = append(t.Want, expression(x, formats))
		}
	}
	if never := s.get(neverTexts); never != nil {
		for _, x := range never.list {
			t.Unwanted = append(t.Unwanted, x.text)
		}
	}
	return t, nil
}

func (c *compiler) stringType(s *value, path string) (automaton.Expr, error) {
	t, err := c.texts(s, path)
	if err != nil {
		return nil, err
	}
	at := show(path)
	switch {
	case len(t.Unwanted) > 0:
		return c.Product(at, t)
	case len(t.Want) == 0:
		return c.Text(t.Least, t.Most), nil
	case len(t.Want) > 1:
		return c.Product(at, t)
	case s.get("pattern") != nil:
		at += "/pattern"
	case s.get("format") != nil:
		at += "/format"
	}
	return c.Pattern(at, t.Want[0], t.Least, t.Most)
}

// mostMultiple is the largest supported divisor.
const mostMultiple = 4096

// mostDecimal is the largest supported divisor with a fraction, multiplied by a power of ten to a
// whole number.
const mostDecimal = 256

func (c *compiler) numberType(s *value, path string, integer bool) (automaton.Expr, error) {
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
	return n.Expr(show(path))
}

// bounds returns the bounds of the keywords for numbers.
func (c *compiler) bounds(s *value, path string) (n automaton.Bounds, err error) {
	s = s.withExclusive()
	for _, k := range []struct {
		key   string
		lower bool
		open  bool
	}{{"minimum", true, false}, {"exclusiveMinimum", true, true}, {"maximum", false, false},
		{"exclusiveMaximum", false, true}} {
		v := s.get(k.key)
		if v == nil {
			continue
		}
		if outermost(v, k.lower) {
			x := new(big.Rat).SetInt(automaton.TenTo(automaton.BoundDigits))
			if x.Sub(x, big.NewRat(1, 1)); k.lower {
				x.Neg(x)
			}
			n.Tighten(x, k.lower, false)
			continue
		}
		x, ok := rational(v)
		if tiny := smallest(v); tiny != 0 {
			x, ok = big.NewRat(int64(tiny), 1), true
			if x.Quo(x, new(big.Rat).SetInt(automaton.TenTo(automaton.BoundDigits))); (tiny > 0) != k.lower {
				x = new(big.Rat) // rounded inward to zero
			}
		}
		if !ok {
			return n, automaton.Refuse(show(path)+"/"+k.key, "the value must be a number of at most %d digits",
				automaton.BoundDigits)
		}
		inner := inward(x, k.lower)
		n.Tighten(inner, k.lower, k.open && inner == x && smallest(v) == 0)
	}
	n.Multiple, n.Decimals, err = multipleOf(s, path)
	n.Integer = n.Multiple != nil && n.Decimals == 0 // multiples of a whole number are whole
	if list := s.get(remainders); list != nil && err == nil {
		err = divide(&n, list.list, path)
	}
	return n, err
}

// remainders is a keyword of merged and negated schemas: lists of a divisor, a remainder, and
// whether the number must have that remainder.
const remainders = "!remainders"

// divide adds remainders. The divisors must have a small common multiple.
func divide(n *automaton.Bounds, list []*value, path string) error {
	if n.Decimals > 0 {
		return automaton.Refuse(show(path),
			"excluded multiples are supported for whole numbers only, not together with a "+
				"multipleOf that has a fraction")
	}
	if n.Integer = true; n.Multiple == nil {
		n.Multiple = big.NewInt(1)
	}
	n.Rests = []automaton.Remainder{{By: n.Multiple.Int64()}}
	for _, x := range list {
		by, _, err := multipleOf(object1("multipleOf", x.list[0]), path)
		if err != nil {
			return err
		}
		rest, _ := strconv.ParseInt(x.list[1].text, 10, 64)
		n.Rests = append(n.Rests, automaton.Remainder{By: by.Int64(), Rest: rest, Not: x.list[2].isFalse()})
		if n.Multiple = lcm(n.Multiple, by); n.Multiple.Cmp(big.NewInt(mostMultiple)) > 0 {
			return automaton.Refuse(show(path), "the divisors have no common multiple up to %d",
				mostMultiple)
		}
	}
	return nil
}

// lcm returns the least common multiple.
func lcm(a, b *big.Int) *big.Int {
	return new(big.Int).Div(new(big.Int).Mul(a, b), new(big.Int).GCD(nil, nil, a, b))
}

// outermost reports whether a bound is beyond all numbers that are generated, such as the limits of
// floating-point types.
func outermost(v *value, lower bool) bool {
	if v.kind != kindNumber {
		return false
	}
	f, _ := strconv.ParseFloat(v.text, 64) // infinite on overflow
	return lower && f <= -1e18 || !lower && f >= 1e18
}

// smallest returns the sign of a bound that is nearer to zero than any number that is generated, or
// 0.
func smallest(v *value) int {
	f, err := strconv.ParseFloat(v.text, 64)
	switch {
	case v.kind != kindNumber || err != nil || f == 0 || f >= 1e-18 || f <= -1e-18:
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

// rational parses a number with a limited number of digits and a limited exponent.
func rational(v *value) (*big.Rat, bool) {
	if v.kind != kindNumber || len(v.text) > 40 {
		return nil, false
	}
	if f, err := strconv.ParseFloat(v.text, 64); err != nil || f > 1e30 || f < -1e30 || f != 0 && f < 1e-30 &&
		f > -1e-30 {
		return nil, false
	}
	return new(big.Rat).SetString(v.text)
}

// multipleOf returns the divisor of multipleOf: of divided by 10^decimals.
func multipleOf(s *value, path string) (of *big.Int, decimals int, err error) {
	v := s.get("multipleOf")
	if v == nil {
		return nil, 0, nil
	}
	x, ok := rational(v)
	if ok && x.Sign() > 0 {
		n, exact := x.FloatPrec()
		whole := new(big.Rat).Mul(x, new(big.Rat).SetInt(automaton.TenTo(n)))
		most := int64(mostMultiple)
		if n > 0 {
			most = mostDecimal
		}
		if exact && n <= automaton.FractionDigits && whole.Num().Cmp(big.NewInt(most)) <= 0 {
			return whole.Num(), n, nil
		}
	}
	return nil, 0, automaton.Refuse(show(path)+"/multipleOf",
		"supported are whole numbers from 1 to %d, and decimal numbers with "+
			"digits up to %d", mostMultiple, mostDecimal)
}
