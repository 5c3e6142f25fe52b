package plans

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/internal/num"
	"sandwich/microkernel"
)

// Span is a half-open range [Lo, Hi) of heads, rows or columns.
type Span struct{ Lo, Hi int }

// Len returns the number of elements in the span.
func (s Span) Len() int { return s.Hi - s.Lo }

// times returns the span in units of 1/n.
func (s Span) times(n int) Span { return Span{s.Lo * n, s.Hi * n} }

// Share is the part of a model that one tensor-parallel rank holds (ArcLight section 3). A rank
// holds the KV heads that its query heads read, so two adjacent ranks may hold and compute the same
// KV head. Everything else belongs to one rank only.
type Share struct {
	Heads   Span // query heads: rows of q, columns of o
	KVHeads Span // rows of k and v, and the cache
	FFN     Span // rows of gate and up, columns of down; of each expert if the model has experts
	Vocab   Span // rows of the head
}

// RoleWhole is the prefix of the roles of matrices that cannot be divided among ranks: queries that
// are normalized across their heads, and layers whose heads have distinct sizes.
const RoleWhole = "whole_"

// Cut divides the model among ranks in proportion to weights, the numbers of their PUs.
// Quantization blocks of o and down, whose columns are divided, stay whole, so shares may be
// uneven. The error says which part of the model cannot be divided among so many ranks.
func (s ModelShape) Cut(weights []int) ([]Share, error) {
	ranks := len(weights)
	if ranks < 1 {
		return nil, fmt.Errorf("%d ranks: use at least one", ranks)
	}
	if ranks == 1 {
		return []Share{{Span{0, s.Heads}, Span{0, s.KVHeads}, Span{0, s.ffnWidth()}, Span{0, s.Vocab}}}, nil
	}
	for _, w := range s.Weights {
		if strings.HasPrefix(w.Role, RoleWhole) {
			return nil, fmt.Errorf("%d ranks: heads of %s models cannot be divided among ranks, since matrix %s "+
				"must stay whole: use one rank", ranks, s.Arch, strings.TrimPrefix(w.Role, RoleWhole))
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
		return nil, fmt.Errorf("%d ranks: the vocabulary has only %d tokens: use fewer ranks", ranks, s.Vocab)
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

// Matrix returns the rows and columns of an n x k matrix of a role that belong to the share. cut is
// false for a matrix that is not divided, such as the router: all ranks compute it together.
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

// ffnWidth returns the dimension along which gate, up and down are divided.
func (s ModelShape) ffnWidth() int {
	if s.Experts > 0 {
		return s.ExpertFFN
	}
	return s.FFN
}

// headUnit returns the smallest number of heads whose columns of o are whole quantization blocks.
func (s ModelShape) headUnit() int { return lcm(s.HeadDim, s.blockOf("o")) / s.HeadDim }

// tooFewHeads returns the error of a model that has too few heads for its ranks.
func (s ModelShape) tooFewHeads(ranks, unit int) error {
	if whole := s.Heads / unit; unit > 1 {
		return fmt.Errorf("%d ranks: the %d heads can be cut in %d places only, since blocks of %d columns of o "+
			"must stay whole: use fewer ranks", ranks, s.Heads, max(0, whole-1), s.blockOf("o"))
	}
	return fmt.Errorf("%d ranks: the model has %d heads: use fewer ranks", ranks, s.Heads)
}

// lineUnit is the number of float32 values in a cache line. Dimensions without larger blocks are
// divided at multiples of it.
const lineUnit = 16

// ffnUnit returns the unit in which FFN columns are divided: the quantization block of down,
// rounded up to whole cache lines of activations if the width has enough of them.
func (s ModelShape) ffnUnit(ranks int) int {
	block := s.blockOf("down")
	if unit := lcm(block, lineUnit); s.ffnWidth()/unit >= ranks {
		return unit
	}
	return block
}

// divide cuts n into one span for each weight, in proportion to the weights and at multiples of
// unit. It returns nil if a span would be empty.
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

// rankWeight is a matrix as some ranks hold it.
type rankWeight struct {
	WeightKey           // of the shard, which selects the schedule table
	Of        WeightKey // of the whole matrix, which selects the compute path (rule 6)
	Ranks     []int     // ranks with such a shard, ascending
	Together  bool      // the matrix is not divided: all ranks compute it together
}

// rankWeights returns the matrices of all products for a division into shares, each pair of shard
// and whole matrix once, sorted by shard.
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

// Partition reports whether the model can be divided among a number of equal tensor-parallel ranks.
// The error says why not. `sandwich tree --sections --model` calls it.
func (s ModelShape) Partition(ranks int) error {
	if ranks > maxRanks {
		return fmt.Errorf("%d ranks: use at most %d", ranks, maxRanks)
	}
	weights := make([]int, max(0, ranks))
	_, err := s.Cut(weights)
	return err
}

// blockOf returns the unit of a division along the columns of a role: the least common multiple of
// the blocks of its weight types.
func (s ModelShape) blockOf(role string) int {
	block := 1
	for _, w := range s.Weights {
		if w.Role == role {
			block = lcm(block, typeBlock(w.Type))
		}
	}
	return block
}

// typeBlock returns the unit of a division along k of a GGUF type. Types without kernels follow the
// naming of their family.
func typeBlock(name string) int {
	t, err := microkernel.ParseWeightType(name)
	switch lower := strings.ToLower(name); {
	case err == nil:
		return t.KStep()
	case strings.Contains(lower, "_k") || strings.HasPrefix(lower, "iq") && lower != "iq4_nl":
		return 256
	case strings.HasPrefix(lower, "q") || strings.HasPrefix(lower, "iq"):
		return 32
	}
	return 1
}

// lcm returns the least common multiple of two positive numbers.
func lcm(a, b int) int { return a / num.GCD(a, b) * b }
