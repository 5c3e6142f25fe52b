package sampling

import (
	"math"
	"math/bits"
)

// allowedSet has a bit for each token that may be drawn; nil allows all.
type allowedSet []uint64

func (a allowedSet) has(id int) bool { return a == nil || id/64 < len(a) && a[id/64]>>(id%64)&1 != 0 }

// only returns the single token of a set of count 1.
func (a allowedSet) only(count int) (int32, bool) {
	for i, w := range a {
		if w != 0 && count == 1 {
			return int32(64*i + bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}

// gather copies the logits of allowed tokens to the front of d.logits and their ids to d.tokens,
// and returns the copied logits.
func (d *Buffer) gather(logits []float32, allowed allowedSet) []float32 {
	if d.tokens == nil {
		d.tokens = make([]int32, len(d.logits))
	}
	n := 0 // never above j, so that logits may be d.logits itself
	for i, w := range allowed {
		if w == math.MaxUint64 && 64*i+64 <= len(logits) {
			copy(d.logits[n:], logits[64*i:64*i+64])
			for j := range 64 {
				d.tokens[n+j] = int32(64*i + j)
			}
			n += 64
			continue
		}
		for ; w != 0; w &= w - 1 {
			j := 64*i + bits.TrailingZeros64(w)
			if j >= len(logits) {
				break
			}
			d.logits[n], d.tokens[n] = logits[j], int32(j)
			n++
		}
	}
	return d.logits[:n]
}

// manyAllowed is the number of allowed tokens from which nextOf first ranks the whole vocabulary.
const manyAllowed = 4096

// nextOf draws a token of a set. The result is the same as with all other logits set to -Inf.
func (s *Sampler) nextOf(logits []float32, allowed allowedSet, d *Buffer) int32 {
	count := 0
	for _, w := range allowed {
		count += bits.OnesCount64(w)
	}
	if id, ok := allowed.only(count); ok {
		return id // whatever its logit is
	}
	greedy := !(s.Temperature > 0) || s.TopK == 1
	if count >= manyAllowed {
		best := d.vec.Argmax(&logits[0], len(logits))
		if allowed.has(best) && greedy {
			return int32(best)
		}
		if allowed.has(best) {
			if c, ok := d.rankOf(logits, allowed, logits[best], s.TopK, s.Temperature); ok {
				return s.draw(s.limit(c))
			}
		}
	}
	row := d.gather(logits, allowed)
	if len(row) == 0 {
		return 0
	}
	if greedy {
		return d.tokens[d.vec.Argmax(&row[0], len(row))]
	}
	c := d.rank(row, s.TopK, s.Temperature)
	for i := range c {
		c[i].id = d.tokens[c[i].id]
	}
	return s.draw(s.limit(c))
}

// rankOf ranks the tokens of a set that contains the likeliest token of all, whose logit is best.
// It returns false if too many tokens outside the set are nearly as likely; the caller then ranks
// the gathered set.
func (d *Buffer) rankOf(
	logits []float32, allowed allowedSet, best float32, k int, temperature float32,
) ([]candidate, bool) {
	for _, width := range []float32{4, 8, 20} {
		if k == 0 && width < 20 {
			continue
		}
		n := d.vec.SelectAbove(&logits[0], len(logits), best-width*max(1, temperature), &d.index[0], selectRoom)
		if n > selectRoom {
			return nil, false
		}
		held := d.index[:0]
		for _, id := range d.index[:n] {
			if allowed.has(int(id)) {
				held = append(held, id)
			}
		}
		if width == 20 || k > 0 && len(held) >= k {
			return d.sorted(logits, held, k), true
		}
	}
	return nil, false
}
