package tables

import (
	"cmp"
	"math"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/ranking"
)

// classes returns the worker kinds of the default plan, the main one first.
func (b *Problems) classes() []string {
	names := []string{""}
	for _, c := range b.Partition.Plan.Classes {
		names = append(names, c.Name)
	}
	return names
}

// jobs returns the searches with their shares of the time: half divided evenly, half by the cost of
// the shape in a forward of its phase.
func (b *Problems) jobs(sets [phase.Count][]ranking.ActiveSet) []*Job {
	var jobs []*Job
	for _, ph := range slices.Backward(b.Partition.Served()) {
		total := 0.0
		for _, c := range b.Partition.Shapes {
			total += b.cost(ph, c.WeightKey)
		}
		for s, set := range sets[ph] {
			jobs = append(jobs, b.jobsOn(ph, s, set.PUs, total)...)
		}
	}
	return jobs
}

// jobsOn returns the searches of one set of PUs, one for each worker kind. total is the cost of all
// shapes in a forward of the phase.
func (b *Problems) jobsOn(ph phase.Phase, s int, pus topotree.CPUSet, total float64) (jobs []*Job) {
	plan := b.Partition.Plan
	for _, class := range b.classes() {
		own := plan.OfClass(class, pus)
		if own.IsEmpty() {
			continue
		}
		shapes, err := plan.TableShapes(own)
		if err != nil {
			panic(err) // the default plan is valid
		}
		// Shapes of the same K are adjacent, because they share packed weights and hints.
		slices.SortStableFunc(shapes, func(a, b plans.TableShape) int {
			return cmp.Or(cmp.Compare(a.K, b.K), cmp.Compare(a.Type, b.Type))
		})
		for _, c := range shapes {
			even := 1 / float64(len(shapes))
			// each set gets half the time of the one before, because the best is most likely to win
			part := math.Ldexp(1, -min(s, 3))
			if c.Threads > 0 { // else no rank has a worker of this kind
				jobs = append(jobs, &Job{Phase: ph, set: s, class: class, PUs: own, Shape: c,
					weight: part * (even + b.cost(ph, c.WeightKey)/total)})
			}
		}
	}
	return jobs
}

// cost returns the cost of a weight shape in one forward, on a rank that holds it: bytes of one row
// in decode, multiplications in prefill, where the head computes one row.
func (b *Problems) cost(ph phase.Phase, k plans.WeightKey) float64 {
	shape, sum := b.Partition.Plan.Model, 0.0
	for _, w := range shape.Weights {
		if !b.holds(w, k) {
			continue
		}
		one := shape.Read(w, 1) * float64(kernels.PackedBytes(k))
		if ph == phase.Prefill {
			one = shape.PerRow(w) * float64(k.N) * float64(k.K)
			if w.Role == "head" {
				one /= float64(b.Partition.Plan.Chunk)
			}
		}
		sum += one
	}
	return sum
}
