package plans

import (
	"fmt"
	"slices"
	"strings"
)

// Span is the half-open range [Lo, Hi) of heads, rows or columns.
type Span struct{ Lo, Hi int }

// Len is the number of things in the span.
func (s Span) Len() int { return s.Hi - s.Lo }

// times is the span in units that are n times as small.
func (s Span) times(n int) Span { return Span{s.Lo * n, s.Hi * n} }

// Share is what one tensor-parallel rank holds of a model (ArcLight section 3). Of the KV heads it
// holds those that its query heads read, so that neighbouring ranks may both hold one and compute
// it alike; everything else is in one share only.
type Share struct {
	Heads   Span // query heads: rows of q, columns of o
	KVHeads Span // rows of k and v, and the cache
	FFN     Span // rows of gate and up, columns of down; inside every expert where there are experts
	Vocab   Span // rows of the head
}

// RoleWhole begins the roles of matrices whose rows belong together, so that no rank can have its
// own: of queries that are normalized across their heads, or of layers whose heads have unlike
// sizes.
const RoleWhole = "whole_"

// Cut divides the model among ranks, in proportion to their weights (the numbers of their PUs).
// Where columns of a matrix are cut, o and down, blocks of its type stay whole, so that shares may
// be uneven. The error is one sentence on what cannot be divided so often.
func (s ModelShape) Cut(weights []int) ([]Share, error) {
	ranks := len(weights)
	if ranks < 1 {
		return nil, fmt.Errorf("%d ranks: there must be at least one", ranks)
	}
	if ranks == 1 {
		return []Share{{Span{0, s.Heads}, Span{0, s.KVHeads}, Span{0, s.ffnWidth()}, Span{0, s.Vocab}}}, nil
	}
	for _, w := range s.Weights {
		if strings.HasPrefix(w.Role, RoleWhole) {
			return nil, fmt.Errorf("%d ranks: heads of %s models cannot be divided among ranks, since matrix %s has "+
				"no part for each: use one rank", ranks, s.Arch, strings.TrimPrefix(w.Role, RoleWhole))
		}
	}
	unit := s.headUnit()
	heads := divide(s.Heads, unit, weights)
	if heads == nil {
		return nil, s.tooFewHeads(ranks, unit)
	}
	unit = s.ffnUnit(ranks)
	ffn := divide(s.ffnWidth(), unit, weights)
	if ffn == nil {
		return nil, fmt.Errorf("%d ranks: the ffn width %d has %d blocks of %d: use fewer ranks", ranks, s.ffnWidth(),
			s.ffnWidth()/unit, unit)
	}
	vocab := divide(s.Vocab, lineUnit, weights)
	if vocab == nil {
		return nil, fmt.Errorf("%d ranks: the vocabulary has only %d words: use fewer ranks", ranks, s.Vocab)
	}
	group := max(1, s.Heads/max(1, s.KVHeads)) // query heads that read one KV head
	shares := make([]Share, ranks)
	for i := range shares {
		h := heads[i]
		shares[i] = Share{Heads: h, KVHeads: Span{h.Lo / group, (h.Hi + group - 1) / group}, FFN: ffn[i],
			Vocab: vocab[i]}
	}
	return shares, nil
}

// Matrix tells which rows and columns of an n x k matrix of a role the share has. cut is false for
// a matrix that stays whole, the router: all ranks compute it together.
func (sh Share) Matrix(role string, headDim, n, k int) (rows, cols Span, cut bool) {
	rows, cols = Span{0, n}, Span{0, k}
	switch role {
	case "q":
		rows = sh.Heads.times(headDim)
	case "k", "v":
		rows = sh.KVHeads.times(headDim)
	case "o":
		cols = sh.Heads.times(headDim)
	case "gate", "up":
		rows = sh.FFN
	case "down":
		cols = sh.FFN
	case "head":
		rows = sh.Vocab
	default:
		return rows, cols, false
	}
	return rows, cols, true
}

// ffnWidth is what gate, up and down are cut along.
func (s ModelShape) ffnWidth() int {
	if s.Experts > 0 {
		return s.ExpertFFN
	}
	return s.FFN
}

// headUnit is the number of heads between two places where o may be cut.
func (s ModelShape) headUnit() int { return lcm(s.HeadDim, s.blockOf("o")) / s.HeadDim }

func (s ModelShape) tooFewHeads(ranks, unit int) error {
	if whole := s.Heads / unit; unit > 1 {
		return fmt.Errorf("%d ranks: the %d heads can be cut in %d places only, since blocks of %d columns of o "+
			"must stay whole: use fewer ranks", ranks, s.Heads, max(0, whole-1), s.blockOf("o"))
	}
	return fmt.Errorf("%d ranks: the model has %d heads: use fewer ranks", ranks, s.Heads)
}

// lineUnit is the float32 values of a cache line: what is not bound to larger blocks is cut there.
const lineUnit = 16

// ffnUnit is the number of ffn columns between two places where down may be cut: its block, and
// whole cache lines of activations where the width has enough of them.
func (s ModelShape) ffnUnit(ranks int) int {
	block := s.blockOf("down")
	if unit := lcm(block, lineUnit); s.ffnWidth()/unit >= ranks {
		return unit
	}
	return block
}

// divide cuts n into one span for each weight, in proportion, at multiples of unit; nil where a
// span would be empty.
func divide(n, unit int, weights []int) []Span {
	units, sum := n/unit, 0
	if units < len(weights) {
		return nil
	}
	total := 0
	for _, w := range weights {
		total += max(1, w)
	}
	out := make([]Span, len(weights))
	last := 0
	for i, w := range weights {
		sum += max(1, w)
		to := (2*units*sum + total) / (2 * total) // rounded
		to = min(max(to, last+1), units-(len(weights)-1-i))
		out[i] = Span{last * unit, to * unit}
		last = to
	}
	out[len(out)-1].Hi = n
	return out
}

// rankWeight is a matrix as the ranks hold it.
type rankWeight struct {
	WeightKey           // of the shard: what schedules are kept for
	Of        WeightKey // the whole matrix: what the compute path belongs to (rule 6)
	Ranks     []int     // that hold such a shard, ascending
	Together  bool      // the matrix is not cut: all ranks compute it together
}

// rankWeights lists what runs as GEMM under a cut, each pair of shard and matrix once, sorted by
// the shard.
func (s ModelShape) rankWeights(shares []Share) []rankWeight {
	var out []rankWeight
	for _, w := range s.Weights {
		if w.Role == RoleEmbed {
			continue
		}
		for r, sh := range shares {
			key, cut := w.Key(), true
			if len(shares) > 1 {
				var rows, cols Span
				rows, cols, cut = sh.Matrix(w.Role, s.HeadDim, w.N, w.K)
				key.N, key.K = rows.Len(), cols.Len()
			}
			at := slices.IndexFunc(out, func(o rankWeight) bool {
				return o.WeightKey == key && o.Of == w.Key() &&
					o.Together == !cut
			})
			if at < 0 {
				at = len(out)
				out = append(out, rankWeight{WeightKey: key, Of: w.Key(), Together: !cut})
			}
			if !slices.Contains(out[at].Ranks, r) {
				out[at].Ranks = append(out[at].Ranks, r)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b rankWeight) int {
		if c := a.WeightKey.Compare(b.WeightKey); c != 0 {
			return c
		}
		return a.Of.Compare(b.Of)
	})
	for i := range out {
		slices.Sort(out[i].Ranks)
	}
	return out
}
