package moe

import (
	"math"

	"sandwich/internal/portable"
	"sandwich/microkernel"
	"sandwich/runtime/model"
)

// weigh chooses the experts of a row and computes their weights from the logits.
func (r *Routes) weigh(vec *microkernel.Vec, row int, logits []float32, by *model.Router) {
	if by.Score == model.Softmax && by.Norm && by.Bias == nil && by.Groups <= 1 {
		r.weighChosen(vec, row, logits)
	} else {
		r.weighAll(vec, row, logits, by)
	}
	r.finish(row, by)
}

// weighChosen computes the softmax over the chosen logits, which equals the softmax over all of
// them scaled to sum 1.
func (r *Routes) weighChosen(vec *microkernel.Vec, row int, logits []float32) {
	r.choose(row, logits, nil)
	weight := r.weight[row*r.used:][:r.used]
	vec.SoftmaxBlock(&weight[0], r.used, 1, r.used, &r.valid, 1, &r.top[row], &r.sum[row])
	for i := range weight {
		weight[i] /= r.sum[row]
	}
}

// minSum bounds the divisor of a row's weights, as in llama.cpp: the smallest normal number of
// half precision. A bias can choose experts whose scores are almost zero.
const minSum = 0x1p-14

// weighAll replaces all logits by scores, chooses by the scores plus the bias, if there is one, and
// uses the scores of the chosen experts as weights.
func (r *Routes) weighAll(vec *microkernel.Vec, row int, logits []float32, by *model.Router) {
	if by.Score == model.Sigmoid {
		for i, l := range logits {
			logits[i] = float32(1 / (1 + portable.Exp(-float64(l))))
		}
	} else {
		vec.SoftmaxBlock(&logits[0], len(logits), 1, len(logits), &r.all, 1, &r.top[row], &r.sum[row])
		for i := range logits {
			logits[i] /= r.sum[row]
		}
	}
	var bias []float32
	if by.Bias != nil {
		bias = by.Bias.Data
	}
	if by.Groups > 1 {
		excludeGroups(logits, bias, by.Groups, by.GroupsUsed)
	}
	r.choose(row, logits, bias)
	if !by.Norm {
		return
	}
	weight, sum := r.weight[row*r.used:][:r.used], float32(0)
	for _, w := range weight {
		sum += w
	}
	sum = max(sum, minSum)
	for i := range weight {
		weight[i] /= sum
	}
}

// excludeGroups keeps the scores of the best groups, by the sum of their best two scores with the
// bias, and excludes the experts of all others (DeepSeek-V3, 2024, section 2.1.2). Of equal groups
// the first is better.
func excludeGroups(scores, bias []float32, groups, used int) {
	n := len(scores) / groups
	best := func(group int) float32 {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for i, s := range scores[group*n:][:n] {
			if bias != nil {
				s += bias[group*n+i]
			}
			if s > first {
				first, second = s, first
			} else if s > second {
				second = s
			}
		}
		if n == 1 {
			return first
		}
		return first + second
	}
	for left := groups; left > used; left-- {
		worst, smallest := -1, float32(math.Inf(1))
		for group := range groups {
			if s := best(group); !math.IsInf(float64(s), -1) && s <= smallest {
				worst, smallest = group, s
			}
		}
		if worst < 0 {
			return
		}
		for i := range n {
			scores[worst*n+i] = float32(math.Inf(-1))
		}
	}
}

// finish scales the weights of a row.
func (r *Routes) finish(row int, by *model.Router) {
	weight := r.weight[row*r.used:][:r.used]
	for i := range weight {
		weight[i] *= by.Scale
	}
}
