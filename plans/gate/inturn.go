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
	over, variance := exchanged(midranks(list), list, len(x))
	if variance <= 0 {
		return 1
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
