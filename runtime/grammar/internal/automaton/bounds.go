package automaton

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Bounds limit a number. A nil field is no bound.
type Bounds struct {
	Least, Most          *big.Rat
	OverLeast, BelowMost bool     // the bound is exclusive
	Multiple             *big.Int // the divisor of multipleOf, scaled by 10^decimals; nil for none
	Decimals             int      // number of fraction digits of multiple
	Integer              bool
	// Rests are the remainders that whole numbers must or must not have; multiple is then a common
	// multiple of all divisors. Without rests, a number must be a multiple of multiple.
	Rests []Remainder
}

// Remainder is a condition on a number: its remainder modulo by must or must not be rest.
type Remainder struct {
	By, Rest int64
	Not      bool
}

// None reports whether n does not limit numbers.
func (n Bounds) None() bool { return n.Least == nil && n.Most == nil && n.Multiple == nil }

// allows reports whether a whole number may have the given remainder modulo multiple.
func (n Bounds) allows(rest int64) bool {
	if len(n.Rests) == 0 {
		return rest == 0
	}
	return !slices.ContainsFunc(n.Rests, func(r Remainder) bool { return (rest%r.By == r.Rest) == r.Not })
}

// Holds reports whether a number satisfies the bounds.
func (n Bounds) Holds(x *big.Rat) bool {
	if n.Least != nil {
		if c := x.Cmp(n.Least); c < 0 || c == 0 && n.OverLeast {
			return false
		}
	}
	if n.Most != nil {
		if c := x.Cmp(n.Most); c > 0 || c == 0 && n.BelowMost {
			return false
		}
	}
	if n.Integer && !x.IsInt() {
		return false
	}
	if n.Multiple == nil {
		return true
	}
	x = new(big.Rat).Mul(x, new(big.Rat).SetInt(TenTo(n.Decimals)))
	return x.IsInt() && n.allows(new(big.Int).Abs(new(big.Int).Rem(x.Num(), n.Multiple)).Int64())
}

// BoundDigits is the largest number of digits of a bound before or after the point.
const BoundDigits = 18

// Expr returns the decimal numbers within the bounds, without exponents. Negative numbers are a
// minus sign and the positive numbers within the mirrored bounds.
func (n Bounds) Expr(path string) (Expr, error) {
	var out Choice
	zero := new(big.Rat)
	if n.Holds(zero) {
		out = append(out, Literal("0"))
	}
	positive := n
	if positive.Least == nil || positive.Least.Sign() < 0 {
		positive.Least, positive.OverLeast = zero, true
	} else if positive.Least.Sign() == 0 {
		positive.OverLeast = true
	}
	negative := n
	negative.Least, negative.Most, negative.OverLeast, negative.BelowMost = nil, nil, n.BelowMost, n.OverLeast
	if n.Most != nil {
		negative.Least = new(big.Rat).Neg(n.Most)
	}
	if n.Least != nil {
		negative.Most = new(big.Rat).Neg(n.Least)
	}
	if negative.Least == nil || negative.Least.Sign() <= 0 {
		negative.Least, negative.OverLeast = zero, true
	}
	for sign, half := range []Bounds{positive, negative} {
		e, err := half.positive(path)
		if err != nil {
			return nil, err
		}
		out = append(out, Sequence{Literal("-"[:sign]), e})
	}
	return out, nil
}

// positive returns the positive numbers within the bounds. n.Least must not be nil.
func (n Bounds) positive(path string) (Expr, error) {
	if n.Most != nil && (n.Most.Sign() <= 0 || n.Most.Cmp(n.Least) < 0) {
		return Nothing{}, nil
	}
	lo, err := decimal(path, n.Least)
	if err != nil {
		return nil, err
	}
	hi, err := decimal(path, n.Most)
	if err != nil {
		return nil, err
	}
	longest := max(n.unboundedDigits(), len(lo.whole))
	if n.Most != nil {
		longest = len(hi.whole)
	}
	return Automaton(func(b *Builder, from, to int32) {
		at := map[digitState]int32{}
		first, past := len(lo.whole)+1, longest+1 // the lengths that are longer than lo and shorter than hi
		if n.Most != nil {
			past--
		}
		if first < past {
			w := &digitWriter{b: b, n: n, min: first, size: past - 1, end: to, at: at,
				lo: strings.Repeat("0", past-1)} // the first digit is not 0
			b.Eps(from, w.state(digitState{low: true}))
		}
		for size := len(lo.whole); size <= longest; size++ {
			if size >= first && size < past {
				continue
			}
			w := &digitWriter{b: b, n: n, min: size, size: size, end: to, at: at}
			w.lo, w.fraction = lo.padded(size), len(lo.part)
			if n.Most != nil && size == len(hi.whole) {
				w.hi, w.fraction = hi.padded(size), max(len(lo.part), len(hi.part))
				w.hi += strings.Repeat("0", size+w.fraction-len(w.hi))
			}
			w.lo += strings.Repeat("0", size+w.fraction-len(w.lo))
			b.Eps(from, w.state(digitState{low: true, high: w.hi != ""}))
		}
	}), nil
}

// fewDigits is the number of digits before the point of unbounded numbers with a divisor above
// largeMultiple: their automaton has a state per remainder and digit.
const (
	fewDigits     = 9
	largeMultiple = 256
)

// unboundedDigits returns the number of digits before the point of numbers without an upper bound.
func (n Bounds) unboundedDigits() int {
	if n.Multiple != nil && n.Multiple.Cmp(big.NewInt(largeMultiple)) > 0 {
		return fewDigits
	}
	return integerDigits
}

// decimals are the digits of a number before and after its point.
type decimals struct{ whole, part string }

// padded returns the digits with leading zeros, so that size digits precede the point.
func (d decimals) padded(size int) string {
	return strings.Repeat("0", size-len(d.whole)) + d.whole + d.part
}

func decimal(path string, x *big.Rat) (decimals, error) {
	if x == nil {
		return decimals{}, nil
	}
	n, exact := x.FloatPrec()
	if !exact || n > BoundDigits || x.Num().BitLen() > 200 {
		return decimals{}, Refuse(path, "a bound has more than %d digits behind the point", BoundDigits)
	}
	whole, part, _ := strings.Cut(x.FloatString(n), ".")
	if len(whole) > BoundDigits {
		return decimals{}, Refuse(path, "a bound has more than %d digits", BoundDigits)
	}
	return decimals{whole, part}, nil
}

// digitState is a position in a number: the number of digits read, whether they equal those of the
// bounds, their remainder, and whether a digit after those of the bounds is not 0.
type digitState struct {
	pos       int
	low, high bool
	rest      int64
	point     bool // the point has been read
	more      bool // a digit after those of the bounds is not 0
	size      int  // digits of the number before the point; 0 if pos counts from the end
	missing   int  // with size 0: the digits that must follow before the point
}

// digitWriter writes the automaton of the numbers between two bounds that have min to size digits
// before the point. lo and hi are the digits of the bounds, fraction of them after the point. Where
// several lengths are written at once, the bounds do not limit any of them.
type digitWriter struct {
	b         *Builder
	n         Bounds
	lo, hi    string
	min, size int
	fraction  int
	end       int32
	at        map[digitState]int32 // shared by all lengths
}

func (w *digitWriter) state(s digitState) int32 {
	key := s
	key.size = w.size
	if (w.n.Integer || w.n.Decimals > 0) && !s.low && !s.high {
		// Share the states of multiples between all lengths.
		key = digitState{pos: s.pos - w.size, rest: s.rest, point: s.point, missing: max(0, w.min-s.pos)}
	}
	if at, ok := w.at[key]; ok {
		return at
	}
	at := w.b.State()
	w.b.Meter.Take(EntryCost)
	w.at[key] = at
	if w.n.Multiple != nil && w.n.Decimals == 0 && !s.low && !s.high {
		w.b.grow(EntryCost)
		rest := w.b.multiple(multiple{w.n.Multiple.Int64(), s.rest, w.size - s.pos, max(0, w.min-s.pos),
			w.n.restText()}, w.n.allows)
		w.b.States[at].Calls = append(w.b.States[at].Calls, callEdge{rest, w.end})
		return at
	}
	w.expand(s, at)
	return at
}

// restText returns a key that identifies the remainders of the bounds.
func (n Bounds) restText() string {
	if len(n.Rests) == 0 {
		return ""
	}
	return fmt.Sprint(n.Rests)
}

// multiple returns the state for a position. All numbers of the grammar with the same divisor share
// these states, which may be thousands.
func (b *Builder) multiple(p multiple, allows func(rest int64) bool) int32 {
	if at, ok := b.multiples[p]; ok {
		return at
	}
	if b.multiples == nil {
		b.multiples = map[multiple]int32{}
	}
	at := b.State()
	b.Meter.Take(EntryCost + 16)
	b.multiples[p] = at
	b.States[at].Final = p.missing == 0 && allows(p.rest)
	if p.digits == 0 {
		return at
	}
	for d := range int64(10) {
		next := b.multiple(multiple{p.of, (p.rest*10 + d) % p.of, p.digits - 1, max(0, p.missing-1), p.rests},
			allows)
		b.Edge(at, next, ByteRange{'0' + byte(d), '0' + byte(d)})
	}
	return at
}

func (w *digitWriter) expand(s digitState, at int32) {
	if s.pos >= w.min && w.inside(s) {
		w.b.Eps(at, w.end)
	}
	if s.pos >= w.min && !s.point && !w.n.Integer {
		next := s
		next.point, next.pos = true, w.size // positions after the point do not depend on the digits before it
		w.b.Edge(at, w.pointed(next), ByteRange{'.', '.'})
	}
	if s.pos != w.size || s.point {
		w.digits(s, at)
	}
}

// pointed returns the state after the point, where a number must not end.
func (w *digitWriter) pointed(s digitState) int32 {
	at := w.b.State()
	w.digits(s, at)
	return at
}

// digits writes the edges for one more digit.
func (w *digitWriter) digits(s digitState, at int32) {
	largest := max(w.fraction, FractionDigits)
	if w.n.Decimals > 0 {
		largest = w.n.Decimals
	}
	if s.pos >= w.size+largest {
		return
	}
	for d := byte('0'); d <= '9'; d++ {
		if d == '0' && s.pos == 0 && (w.size > 1 || w.n.Integer) {
			continue // expr adds zero itself
		}
		next, ok := w.with(s, d)
		if ok {
			w.b.Edge(at, w.state(next), ByteRange{d, d})
		}
	}
}

// with returns the state after a digit. It returns false if the digit leaves the bounds.
func (w *digitWriter) with(s digitState, d byte) (digitState, bool) {
	next := s
	if s.pos < len(w.lo) {
		if s.low && d < w.lo[s.pos] || s.high && w.hi != "" && d > w.hi[s.pos] {
			return s, false
		}
		next.low = s.low && d == w.lo[s.pos]
		next.high = s.high && w.hi != "" && d == w.hi[s.pos]
	} else {
		if s.high && d != '0' {
			return s, false
		}
		next.more = s.low && (s.more || d != '0')
	}
	next.pos++
	if w.n.Multiple != nil {
		next.rest = (s.rest*10 + int64(d-'0')) % w.n.Multiple.Int64()
	}
	return next, true
}

// inside reports whether a number that ends in state s is within the bounds.
func (w *digitWriter) inside(s digitState) bool {
	rest := s.rest
	for missing := w.n.Decimals - max(0, s.pos-w.size); missing > 0 && rest != 0; missing-- {
		rest = rest * 10 % w.n.Multiple.Int64()
	}
	if w.n.Multiple != nil && !w.n.allows(rest) {
		return false
	}
	if s.low {
		left := strings.Trim(w.lo[min(s.pos, len(w.lo)):], "0") // missing digits are zeros
		if left != "" || w.n.OverLeast && !s.more {
			return false
		}
	}
	if s.high && w.n.BelowMost {
		return strings.Trim(w.hi[min(s.pos, len(w.hi)):], "0") != ""
	}
	return true
}

// TenTo returns a power of ten.
func TenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// Tighten adds a bound.
func (n *Bounds) Tighten(x *big.Rat, lower, open bool) {
	if lower && (n.Least == nil || x.Cmp(n.Least) > 0 || x.Cmp(n.Least) == 0 && open) {
		n.Least, n.OverLeast = x, open
	}
	if !lower && (n.Most == nil || x.Cmp(n.Most) < 0 || x.Cmp(n.Most) == 0 && open) {
		n.Most, n.BelowMost = x, open
	}
}
