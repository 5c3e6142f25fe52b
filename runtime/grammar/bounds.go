package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// bounds limit a number; nil where there is no bound.
type bounds struct {
	least, most          *big.Rat
	overLeast, belowMost bool     // the bound itself is left out
	multiple             *big.Int // they are multiples of it; nil: of any
	decimals             int      // multiple has so many digits behind its point; 0: it is whole
	integer              bool
	// rests are what whole numbers leave, or do not, when divided; multiple is then a common
	// multiple of all these divisors. Where there are none a multiple of it leaves nothing.
	rests []remainder
}

// remainder is what is left of a number when it is divided by another one; or what must not be.
type remainder struct {
	by, rest int64
	not      bool
}

func (n bounds) none() bool { return n.least == nil && n.most == nil && n.multiple == nil }

// allows tells whether a whole number may leave so much when divided by multiple.
func (n bounds) allows(rest int64) bool {
	if len(n.rests) == 0 {
		return rest == 0
	}
	return !slices.ContainsFunc(n.rests, func(r remainder) bool { return (rest%r.by == r.rest) == r.not })
}

// holds tells whether a number is inside.
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

// boundDigits is how many digits a bound may have before or behind its point.
const boundDigits = 18

// expr spells the decimal numbers inside the bounds, without exponents: the negative ones behind
// a sign, as the mirror image of positive ones.
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

// positive spells the positive numbers inside the bounds, whose lower one is never missing.
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
		first, past := len(lo.whole)+1, longest+1 // of the lengths that no bound is of
		if n.most != nil {
			past--
		}
		if first < past {
			w := &digitWriter{b: b, n: n, least: first, size: past - 1, end: to, at: at,
				lo: strings.Repeat("0", past-1)} // the first digit is none
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

// fewDigits is how many digits numbers without an upper bound have that are multiples of a large
// number: their automaton has a state for each remainder and digit.
const (
	fewDigits     = 9
	largeMultiple = 256
)

// unboundedDigits returns how many digits numbers have before the point, where no bound says so.
func (n bounds) unboundedDigits() int {
	if n.multiple != nil && n.multiple.Cmp(big.NewInt(largeMultiple)) > 0 {
		return fewDigits
	}
	return integerDigits
}

// decimals are the digits of a number before and behind its point.
type decimals struct{ whole, part string }

// padded are the digits, with zeros in front to have so many before the point.
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

// digitState is a place in a number of a given length: how many digits were read, whether they are
// those of the bounds so far, what they leave when divided, and whether one of those behind the
// bounds' digits was not zero.
type digitState struct {
	pos       int
	low, high bool
	rest      int64
	point     bool // the point was just read, or digits behind it
	more      bool // a digit behind those of the bounds is not zero
	size      int  // of the number; 0 where only the digits left matter, which pos then counts up to 0
	missing   int  // where only these matter: so many must follow before the point
}

// digitWriter writes the numbers of one length before the point between two bounds, whose digits
// are lo and hi, fraction of them behind the point; or those of several lengths that no bound is
// of: least to size digits before the point.
type digitWriter struct {
	b           *builder
	n           bounds
	lo, hi      string
	least, size int
	fraction    int
	end         int32
	at          map[digitState]int32 // shared by the numbers of all lengths
}

func (w *digitWriter) state(s digitState) int32 {
	key := s
	key.size = w.size
	if (w.n.integer || w.n.decimals > 0) && !s.low && !s.high {
		// So that multiples are told apart once.
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

// multiple is a place in a multiple of a number that no bound holds any more: what the digits so
// far leave when divided, and how many follow: missing to digits.
type multiple struct {
	of, rest        int64
	digits, missing int
	rests           string // as of restText
}

// restText tells bounds apart by what may be left when numbers are divided.
func (n bounds) restText() string {
	if len(n.rests) == 0 {
		return ""
	}
	return fmt.Sprint(n.rests)
}

// multiple is the state at such a place, which all numbers of the grammar share that are multiples
// of the same one: there are thousands.
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
		next.point, next.pos = true, w.size // as if it had all digits before the point
		w.b.edge(at, w.pointed(next), byteRange{'.', '.'})
	}
	if s.pos != w.size || s.point {
		w.digits(s, at)
	}
}

// pointed is the state behind the point, where the number must not end.
func (w *digitWriter) pointed(s digitState) int32 {
	at := w.b.state()
	w.digits(s, at)
	return at
}

// digits writes the ways of one more digit.
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
			continue // zero itself is spelled elsewhere
		}
		next, ok := w.with(s, d)
		if ok {
			w.b.edge(at, w.state(next), byteRange{d, d})
		}
	}
}

// with is the state behind a digit; not ok where it leaves the bounds.
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

// inside tells whether a number that ends here is inside the bounds.
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
