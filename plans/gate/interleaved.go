package gate

import (
	"math"
	"slices"
)

// quotients returns the ratios of each sample of y to each sample of x in the same round. A
// disturbance that lasts a round affects both sides and leaves the ratios unchanged.
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

// rankTest returns the two-sided p-value of an aligned rank test (Hodges and Lehmann 1962): the
// level of each round is subtracted from its samples, and the rank sum of y is compared with those
// of all exchanges of labels within rounds. x and y must have equally many rounds.
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
	rank, _ := midranks(values(list))
	over, variance := exchanged(rank, list, len(x))
	if variance <= 0 {
		return 1
	}
	if len(list) <= maxExchanged {
		return exchanges(rank, list, len(x))
	}
	return math.Erfc(max(0, math.Abs(over)-0.5) / math.Sqrt(2*variance))
}

// aligned is the logarithm of a sample minus the level of its round.
type aligned struct {
	value float64
	round int
	ofY   bool
}

// values returns the values of aligned samples.
func values(list []aligned) []float64 {
	out := make([]float64, len(list))
	for i, a := range list {
		out[i] = a.value
	}
	return out
}

// maxExchanged is the number of samples up to which rankTest uses the exact distribution. Above it
// the normal approximation is accurate enough.
const maxExchanged = 200

// exchanges returns the exact p-value of rankTest: the fraction of all exchanges of labels within
// rounds whose rank sum deviates from its mean at least as much as the observed one.
func exchanges(rank []float64, list []aligned, rounds int) float64 {
	twice, ofY := make([][]int, rounds), make([]int, rounds) // doubled, since midranks may be halves
	seen := 0
	for i, a := range list {
		r := int(math.Round(2 * rank[i]))
		twice[a.round] = append(twice[a.round], r)
		if a.ofY {
			ofY[a.round]++
			seen += r
		}
	}
	chances, mean := []float64{1}, 0.0 // probabilities by sum
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

// draws returns the probability of each sum of k of the numbers drawn without replacement.
func draws(numbers []int, k int) []float64 {
	largest := 0
	for _, n := range numbers {
		largest += n
	}
	ways := make([][]float64, k+1) // by number of draws and sum
	for i := range ways {
		ways[i] = make([]float64, largest+1)
	}
	ways[0][0] = 1
	for _, n := range numbers {
		for i := k; i > 0; i-- {
			for sum := largest; sum >= n; sum-- {
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

// convolve returns the probabilities of the sums of two independent numbers.
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

// RoundsFor returns the number of rounds of two interleaved arms that can prove a difference among
// so many rows. With fewer rounds, even an arm that wins every round is not significant after
// Holm's correction.
func RoundsFor(rows int) int {
	return int(math.Floor(math.Log2(2*float64(max(1, rows))/level))) + 1
}

// exchanged returns the difference between the rank sum of y and its mean over all exchanges of
// labels within rounds, and the variance of the sum.
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
