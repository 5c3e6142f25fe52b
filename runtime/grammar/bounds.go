package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// bounds limit a number. A nil field is no bound.
type bounds struct {
	least, most          *big.Rat
	overLeast, belowMost bool     // the bound is exclusive
	multiple             *big.Int // the divisor of multipleOf, scaled by 10^decimals; nil for none
	decimals             int      // number of fraction digits of multiple
	integer              bool
	// rests are the remainders that whole numbers must or must not have; multiple is then a common
	// multiple of all divisors. Without rests, a number must be a multiple of multiple.
	rests []remainder
}

// remainder is a condition on a number: its remainder modulo by must or must not be rest.
type remainder struct {
	by, rest int64
	not      bool
}

func (n bounds) none() bool { return n.least == nil && n.most == nil && n.multiple == nil }

// allows reports whether a whole number may have the given remainder modulo multiple.
func (n bounds) allows(rest int64) bool {
	if len(n.rests) == 0 {
		return rest == 0
	}
	return !slices.ContainsFunc(n.rests, func(r remainder) bool { return (rest%r.by == r.rest) == r.not })
}

// holds reports whether a number satisfies the bounds.
func (n bounds) holds(x *big.Rat) bool {
	if n.least != nil {
		if c := x.Cmp(n.least); c < 0 || c == 0 && n.overLeast {
			return false
		}
	}
	if n.most != nil {
		if c := x.Cmp(n.most); c > 0 || c == 0 && n.belowMost {
			return false
		}
	}
	if n.integer && !x.IsInt() {
		return false
	}
	if n.multiple == nil {
		return true
	}
	x = new(big.Rat).Mul(x, new(big.Rat).SetInt(tenTo(n.decimals)))
	return x.IsInt() && n.allows(new(big.Int).Abs(new(big.Int).Rem(x.Num(), n.multiple)).Int64())
}

// boundDigits is the largest number of digits of a bound before or after the point.
const boundDigits = 18

// expr returns the decimal numbers within the bounds, without exponents. Negative numbers are a
// minus sign and the positive numbers within the mirrored bounds.
func (n bounds) expr(path string) (expr, error) {
	var out choice
	zero := new(big.Rat)
	if n.holds(zero) {
		out = append(out, literal("0"))
	}
	positive := n
	if positive.least == nil || positive.least.Sign() < 0 {
		positive.least, positive.overLeast = zero, true
	} else if positive.least.Sign() == 0 {
		positive.overLeast = true
	}
	negative := n
	negative.least, negative.most, negative.overLeast, negative.belowMost = nil, nil, n.belowMost, n.overLeast
	if n.most != nil {
		negative.least = new(big.Rat).Neg(n.most)
	}
	if n.least != nil {
		negative.most = new(big.Rat).Neg(n.least)
	}
	if negative.least == nil || negative.least.Sign() <= 0 {
		negative.least, negative.overLeast = zero, true
	}
	for sign, half := range []bounds{positive, negative} {
		e, err := half.positive(path)
		if err != nil {
			return nil, err
		}
		out = append(out, sequence{literal("-"[:sign]), e})
	}
	return out, nil
}

// positive returns the positive numbers within the bounds. n.least must not be nil.
func (n bounds) positive(path string) (expr, error) {
	if n.most != nil && (n.most.Sign() <= 0 || n.most.Cmp(n.least) < 0) {
		return nothing{}, nil
	}
	lo, err := decimal(path, n.least)
	if err != nil {
		return nil, err
	}
	hi, err := decimal(path, n.most)
	if err != nil {
		return nil, err
	}
	longest := max(n.unboundedDigits(), len(lo.whole))
	if n.most != nil {
		longest = len(hi.whole)
	}
	return automaton(func(b *builder, from, to int32) {
		at := map[digitState]int32{}
		first, past := len(lo.whole)+1, longest+1 // the lengths that are longer than lo and shorter than hi
		if n.most != nil {
			past--
		}
		if first < past {
			w := &digitWriter{b: b, n: n, least: first, size: past - 1, end: to, at: at,
				lo: strings.Repeat("0", past-1)} // the first digit is not 0
			b.eps(from, w.state(digitState{low: true}))
		}
		for size := len(lo.whole); size <= longest; size++ {
			if size >= first && size < past {
				continue
			}
			w := &digitWriter{b: b, n: n, least: size, size: size, end: to, at: at}
			w.lo, w.fraction = lo.padded(size), len(lo.part)
			if n.most != nil && size == len(hi.whole) {
				w.hi, w.fraction = hi.padded(size), max(len(lo.part), len(hi.part))
				w.hi += strings.Repeat("0", size+w.fraction-len(w.hi))
			}
			w.lo += strings.Repeat("0", size+w.fraction-len(w.lo))
			b.eps(from, w.state(digitState{low: true, high: w.hi != ""}))
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
func (n bounds) unboundedDigits() int {
	if n.multiple != nil && n.multiple.Cmp(big.NewInt(largeMultiple)) > 0 {
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
	if !exact || n > boundDigits || x.Num().BitLen() > 200 {
		return decimals{}, refuse(path, "a bound has more than %d digits behind the point", boundDigits)
	}
	whole, part, _ := strings.Cut(x.FloatString(n), ".")
	if len(whole) > boundDigits {
		return decimals{}, refuse(path, "a bound has more than %d digits", boundDigits)
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

// digitWriter writes the automaton of the numbers between two bounds that have least to size digits
// before the point. lo and hi are the digits of the bounds, fraction of them after the point. Where
// several lengths are written at once, the bounds do not limit any of them.
type digitWriter struct {
	b           *builder
	n           bounds
	lo, hi      string
	least, size int
	fraction    int
	end         int32
	at          map[digitState]int32 // shared by all lengths
}

func (w *digitWriter) state(s digitState) int32 {
	key := s
	key.size = w.size
	if (w.n.integer || w.n.decimals > 0) && !s.low && !s.high {
		// Share the states of multiples between all lengths.
		key = digitState{pos: s.pos - w.size, rest: s.rest, point: s.point, missing: max(0, w.least-s.pos)}
	}
	if at, ok := w.at[key]; ok {
		return at
	}
	at := w.b.state()
	w.b.meter.take(entryCost)
	w.at[key] = at
	if w.n.multiple != nil && w.n.decimals == 0 && !s.low && !s.high {
		w.b.grow(entryCost)
		rest := w.b.multiple(multiple{w.n.multiple.Int64(), s.rest, w.size - s.pos, max(0, w.least-s.pos),
			w.n.restText()}, w.n.allows)
		w.b.states[at].calls = append(w.b.states[at].calls, callEdge{rest, w.end})
		return at
	}
	w.expand(s, at)
	return at
}

// multiple is a position in a multiple of a number that no bound limits any more: the remainder of
// the digits so far, and missing to digits digits that follow.
type multiple struct {
	of, rest        int64
	digits, missing int
	rests           string // see restText
}

// restText returns a key that identifies the remainders of the bounds.
func (n bounds) restText() string {
	if len(n.rests) == 0 {
		return ""
	}
	return fmt.Sprint(n.rests)
}

// multiple returns the state for a position. All numbers of the grammar with the same divisor share
// these states, which may be thousands.
func (b *builder) multiple(p multiple, allows func(rest int64) bool) int32 {
	if at, ok := b.multiples[p]; ok {
		return at
	}
	if b.multiples == nil {
		b.multiples = map[multiple]int32{}
	}
	at := b.state()
	b.meter.take(entryCost + 16)
	b.multiples[p] = at
	b.states[at].final = p.missing == 0 && allows(p.rest)
	if p.digits == 0 {
		return at
	}
	for d := range int64(10) {
		next := b.multiple(multiple{p.of, (p.rest*10 + d) % p.of, p.digits - 1, max(0, p.missing-1), p.rests},
			allows)
		b.edge(at, next, byteRange{'0' + byte(d), '0' + byte(d)})
	}
	return at
}

func (w *digitWriter) expand(s digitState, at int32) {
	if s.pos >= w.least && w.inside(s) {
		w.b.eps(at, w.end)
	}
	if s.pos >= w.least && !s.point && !w.n.integer {
		next := s
		next.point, next.pos = true, w.size // positions after the point do not depend on the digits before it
		w.b.edge(at, w.pointed(next), byteRange{'.', '.'})
	}
	if s.pos != w.size || s.point {
		w.digits(s, at)
	}
}

// pointed returns the state after the point, where a number must not end.
func (w *digitWriter) pointed(s digitState) int32 {
	at := w.b.state()
	w.digits(s, at)
	return at
}

// digits writes the edges for one more digit.
func (w *digitWriter) digits(s digitState, at int32) {
	most := max(w.fraction, fractionDigits)
	if w.n.decimals > 0 {
		most = w.n.decimals
	}
	if s.pos >= w.size+most {
		return
	}
	for d := byte('0'); d <= '9'; d++ {
		if d == '0' && s.pos == 0 && (w.size > 1 || w.n.integer) {
			continue // expr adds zero itself
		}
		next, ok := w.with(s, d)
		if ok {
			w.b.edge(at, w.state(next), byteRange{d, d})
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
	if w.n.multiple != nil {
		next.rest = (s.rest*10 + int64(d-'0')) % w.n.multiple.Int64()
	}
	return next, true
}

// inside reports whether a number that ends in state s is within the bounds.
func (w *digitWriter) inside(s digitState) bool {
	rest := s.rest
	for missing := w.n.decimals - max(0, s.pos-w.size); missing > 0 && rest != 0; missing-- {
		rest = rest * 10 % w.n.multiple.Int64()
	}
	if w.n.multiple != nil && !w.n.allows(rest) {
		return false
	}
	if s.low {
		left := strings.Trim(w.lo[min(s.pos, len(w.lo)):], "0") // missing digits are zeros
		if left != "" || w.n.overLeast && !s.more {
			return false
		}
	}
	if s.high && w.n.belowMost {
		return strings.Trim(w.hi[min(s.pos, len(w.hi)):], "0") != ""
	}
	return true
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// tighten adds a bound.
func (n *bounds) tighten(x *big.Rat, lower, open bool) {
	if lower && (n.least == nil || x.Cmp(n.least) > 0 || x.Cmp(n.least) == 0 && open) {
		n.least, n.overLeast = x, open
	}
	if !lower && (n.most == nil || x.Cmp(n.most) < 0 || x.Cmp(n.most) == 0 && open) {
		n.most, n.belowMost = x, open
	}
}
