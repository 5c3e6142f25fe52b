package gate

import (
	"cmp"
	"math"
	"slices"
)

// quotients are the ratios of every sample of y to every sample of x of the same round. What slows
// a machine down for some rounds meets both sides of each and leaves them alone.
func quotients(x, y arm) arm {
	out := make(arm, len(x))
	for i := range x {
		for _, under := range x[i] {
			for _, over := range y[i] {
				out[i] = append(out[i], over/under)
			}
		}
	}
	return out
}

// rankTest is the two-sided probability that samples of y rank as far from those of x of the same
// rounds as they do: the rank sum of Mann and Whitney over samples freed of the level of their
// round, against labels exchanged within rounds (aligned ranks; Hodges and Lehmann 1962).
func rankTest(x, y arm) float64 {
	var list []aligned
	for i := range x {
		level, n := 0.0, float64(len(x[i])+len(y[i]))
		for _, v := range slices.Concat(x[i], y[i]) {
			level += math.Log(v) / n
		}
		for side, samples := range [][]float64{x[i], y[i]} {
			for _, v := range samples {
				list = append(list, aligned{math.Log(v) - level, i, side == 1})
			}
		}
	}
	if slices.ContainsFunc(list, func(a aligned) bool { return math.IsNaN(a.value) || math.IsInf(a.value, 0) }) {
		return 1
	}
	rank := midranks(list)
	over, variance := exchanged(rank, list, len(x))
	if variance <= 0 {
		return 1
	}
	if len(list) <= mostExchanged {
		return exchanges(rank, list, len(x))
	}
	return math.Erfc(max(0, math.Abs(over)-0.5) / math.Sqrt(2*variance))
}

// aligned is a sample less the level of its round.
type aligned struct {
	value float64
	round int
	ofY   bool
}

// midranks are the ranks of the values, their mean where several are equal.
func midranks(list []aligned) []float64 {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(list[a].value, list[b].value) })
	out := make([]float64, len(list))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && list[order[j]].value == list[order[i]].value {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// mostExchanged is of how many samples all exchanges are counted; of more their sum is as good as
// normal. Of ten rounds it is not: an arm that is the faster one in all of them has a probability
// of 0.002, and 0.007 where the sum is taken for normal.
const mostExchanged = 200

// exchanges is the probability itself that rankTest is about: of all ways to exchange the labels
// within rounds, the share in which the ranks of y sum to as far from what is to be expected.
func exchanges(rank []float64, list []aligned, rounds int) float64 {
	twice, ofY := make([][]int, rounds), make([]int, rounds) // midranks are halves
	seen := 0
	for i, a := range list {
		r := int(math.Round(2 * rank[i]))
		twice[a.round] = append(twice[a.round], r)
		if a.ofY {
			ofY[a.round]++
			seen += r
		}
	}
	chances, mean := []float64{1}, 0.0 // by sum
	for i, ranks := range twice {
		chances = convolve(chances, draws(ranks, ofY[i]))
		for _, r := range ranks {
			mean += float64(r) * float64(ofY[i]) / float64(len(ranks))
		}
	}
	p := 0.0
	for sum, chance := range chances {
		if math.Abs(float64(sum)-mean) >= math.Abs(float64(seen)-mean)-1e-6 {
			p += chance
		}
	}
	return min(p, 1)
}

// draws are the chances of each sum of k of some numbers.
func draws(numbers []int, k int) []float64 {
	most := 0
	for _, n := range numbers {
		most += n
	}
	ways := make([][]float64, k+1) // by how many were drawn, and their sum
	for i := range ways {
		ways[i] = make([]float64, most+1)
	}
	ways[0][0] = 1
	for _, n := range numbers {
		for i := k; i > 0; i-- {
			for sum := most; sum >= n; sum-- {
				ways[i][sum] += ways[i-1][sum-n]
			}
		}
	}
	all := 0.0
	for _, w := range ways[k] {
		all += w
	}
	for sum := range ways[k] {
		ways[k][sum] /= all
	}
	return ways[k]
}

// convolve are the chances of the sums of two independent numbers.
func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for j, y := range b {
		if y == 0 {
			continue
		}
		for i, x := range a {
			out[i+j] += x * y
		}
	}
	return out
}

// RoundsFor is how many rounds of two interleaved arms can prove a difference among so many rows:
// with fewer, even an arm that is the faster one in each of them has a probability above the level
// after Holm's correction.
func RoundsFor(rows int) int {
	return max(leastRounds, int(math.Floor(math.Log2(2*float64(max(1, rows))/level)))+1)
}

// exchanged is by how much the ranks of y sum to more than is to be expected where any samples of
// a round may be those of y, and the variance of that sum.
func exchanged(rank []float64, list []aligned, rounds int) (over, variance float64) {
	type sums struct{ n, ofY, all, squares, y float64 }
	by := make([]sums, rounds)
	for i, a := range list {
		s := &by[a.round]
		s.n, s.all, s.squares = s.n+1, s.all+rank[i], s.squares+rank[i]*rank[i]
		if a.ofY {
			s.ofY, s.y = s.ofY+1, s.y+rank[i]
		}
	}
	for _, s := range by {
		if s.n < 2 {
			continue
		}
		mean := s.all / s.n
		over += s.y - s.ofY*mean
		variance += (s.squares/s.n - mean*mean) * s.ofY * (s.n - s.ofY) / (s.n - 1)
	}
	return over, variance
}
