package tables

import (
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/partition"
	"sandwich/tuner/search"
)

// Job is one kernel table to search.
type Job struct {
	Phase  phase.Phase
	PUs    topotree.CPUSet  // PUs of the set that belong to the worker kind
	Shape  plans.TableShape // with the threads of the set
	set    int              // index into the sets of the phase
	class  string           // of workers; "": the main one
	weight float64          // share of the time
	took   time.Duration
	kept   int // number of anchors that earlier runs finished
	result *search.Result
}

// key returns the weight shape of the table.
func (j *Job) key() plans.WeightKey { return j.Shape.WeightKey }

// Problems makes the search problems of the tables of a partition.
type Problems struct {
	Partition *partition.Partition
	Effort    search.Effort
	Budget    time.Duration // of the run
}

// New returns the search problem of a job, on operands that hold the given bytes of weights.
// earlier has the finished jobs.
func (b *Problems) New(weightBytes int, j *Job, earlier []*Job) (search.Problem, error) {
	plan, host := b.Partition.Plan, b.Partition.Subject.Profile
	ways := search.Polymerizations(j.Shape.Threads)
	if len(plan.Classes) > 0 {
		ways = [][2]int{{0, 0}} // products are divided by throughput
	}
	compute := j.Shape.Compute
	wt, err := microkernel.ParseWeightType(j.key().Type)
	if err != nil {
		return search.Problem{}, err
	}
	p := search.Problem{
		Phase: j.Phase.String(), Key: j.key(), Compute: compute, Threads: j.Shape.Threads, Anchors: b.anchors(j),
		Kernels: search.Candidates(host.Features(), plan.ISAOf(j.class), compute, wt),
		Ways:    ways, Ceiling: b.ceiling(compute, j.PUs, j.Shape.Threads),
		Incumbent: func(m int) plans.Schedule { return b.incumbent(j, m) },
		Hints:     func(m int) []plans.Schedule { return hints(j, earlier, m) },
		MaxColumns: func(m int) int {
			panel := microkernel.Layout{Type: wt, N: microkernel.PanelWidth, K: j.key().K}.PanelStride()
			return min(widestOutput(m), weightBytes/panel*microkernel.PanelWidth)
		},
		Known: known(j, earlier),
	}
	p.CacheL1, p.CacheL2 = b.caches(j.PUs)
	return p, nil
}

// anchors returns the M of a job: up to batch-max in decode and up to seq-max in prefill. The head
// has few in prefill, because it computes the last token only unless all logits are requested.
func (b *Problems) anchors(j *Job) []int {
	plan := b.Partition.Plan
	if j.Phase == phase.Decode {
		return search.AnchorLengths(plan.BatchMax, b.Effort.Octave)
	}
	chunk := min(plan.SeqMax, plan.Chunk)
	out := search.AnchorLengths(min(chunk, 16), 1)
	for _, w := range plan.Model.Weights {
		if b.holds(w, j.key()) && w.Role != "head" {
			out = search.AnchorLengths(chunk, b.Effort.Octave)
		}
	}
	if chunk > out[len(out)-1] {
		out = append(out, chunk)
	}
	if plan.SeqMax > chunk {
		// forwards have at most a chunk of rows; one larger M bounds the open range
		out = append(out, plan.SeqMax)
	}
	return out
}

// holds reports whether some rank has a weight of this shape.
func (b *Problems) holds(w plans.WeightShape, k plans.WeightKey) bool {
	if w.Role == plans.RoleEmbed {
		return false
	}
	plan := b.Partition.Plan
	for r := range plan.Ranks {
		if plan.KeyOf(r, w) == k {
			return true
		}
	}
	return false
}

// incumbent returns the default schedule, without its static scheme if that was made for another
// number of threads.
func (b *Problems) incumbent(j *Job, m int) plans.Schedule {
	s, _ := b.Partition.Phase(j.Phase).LookupOf(j.class, j.key(), m)
	if s.WaysM*s.WaysN != j.Shape.Threads {
		s.WaysM, s.WaysN = 0, 0
	}
	return s
}

// hints returns the winners for m of shapes with the same K and type in the same phase on the same
// PUs, because most of a schedule does not depend on N, and of the same shape on other PUs.
func hints(j *Job, earlier []*Job, m int) []plans.Schedule {
	var out []plans.Schedule
	for _, e := range slices.Backward(earlier) {
		alike := e.set == j.set && e.key().K == j.key().K && e.key().Type == j.key().Type
		if e.Phase != j.Phase || e.class != j.class || !alike && (e.set == j.set || e.key() != j.key()) {
			continue
		}
		ph := plans.Phase{Tables: []plans.Table{{WeightKey: e.key(), Rules: e.result.Rules}}}
		s, ok := ph.Lookup(e.key(), m)
		if s.WaysM*s.WaysN != j.Shape.Threads {
			s.WaysM, s.WaysN = 0, 0
		}
		if ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
		if len(out) == 2 {
			break
		}
	}
	return out
}

// known returns what the decode search found for the same shape on the same PUs.
func known(j *Job, earlier []*Job) []search.Anchor {
	if j.Phase == phase.Decode {
		return nil
	}
	for _, e := range earlier {
		if e.Phase == phase.Decode && e.class == j.class && e.key() == j.key() && e.PUs.Equal(j.PUs) {
			return slices.DeleteFunc(slices.Clone(e.result.Anchors),
				func(a search.Anchor) bool { return len(a.Seconds) == 0 })
		}
	}
	return nil
}
