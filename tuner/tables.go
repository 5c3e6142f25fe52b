package tuner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure"
	"sandwich/tuner/ranking"
	"sandwich/tuner/search"
)

// job is one kernel table to search.
type job struct {
	phase  int
	set    int         // index into the sets of the phase
	class  string      // of workers; "": the main one
	pus    plans.PUSet // PUs of the set that belong to the worker kind
	key    plans.WeightKey
	shape  plans.TableShape // with the threads of the set
	weight float64          // share of the time
	took   time.Duration
	kept   int // number of anchors that earlier runs finished
	result *search.Result
}

// searchTables searches a kernel table for every weight shape on every remaining set of PUs. Decode
// comes first, because its results for few rows apply to prefill on the same PUs.
func (t *partition) searchTables(l *pool.Leader) error {
	jobs := t.jobs()
	bench := &tableBench{t: t, l: l}
	defer bench.free()
	total := 0.0
	for _, j := range jobs {
		total += j.weight
	}
	left, all := total, t.until(t.kernelsEnd)
	for i, j := range jobs {
		budget := max(0, time.Duration(float64(t.until(t.kernelsEnd))*j.weight/left))
		share := max(0, all.Seconds()*j.weight/total)
		left -= j.weight
		if err := t.searchTable(bench, j, jobs[:i], budget, share); err != nil {
			return err
		}
	}
	for p := range t.phases {
		t.phases[p].tables = make([][]plans.Table, len(t.phases[p].sets))
	}
	for _, class := range t.classes() { // in the order of plan files
		for _, c := range t.shapes {
			for p := range t.phases {
				for s := range t.phases[p].tables {
					table, _ := phaseOf(t.def, p).TableOf(class, c.WeightKey)
					found := plans.Table{WeightKey: c.WeightKey, Class: class, Rules: table.Rules}
					for _, j := range jobs {
						if j.phase == p && j.set == s && j.class == class && j.key == c.WeightKey {
							found.Rules = j.result.Rules
						}
					}
					t.phases[p].tables[s] = append(t.phases[p].tables[s], found)
				}
			}
		}
	}
	return nil
}

// classes returns the worker kinds of the default plan, the main one first.
func (t *partition) classes() []string {
	names := []string{""}
	for _, c := range t.def.Classes {
		names = append(names, c.Name)
	}
	return names
}

// tableBench holds the operands that kernels are timed on. They are allocated before the first
// trial.
type tableBench struct {
	t     *partition
	l     *pool.Leader
	bench *measure.GemmBench
	size  measure.GemmSize
}

// weightBytes returns the bytes of weights that fit in the operands.
func (b *tableBench) weightBytes() int {
	if b.size.Round == 0 {
		b.size = b.t.benchSize()
	}
	return b.size.Round + b.size.Copy
}

// ready activates the PUs of a job and fills the operands, so that the first trial does not include
// this time.
func (b *tableBench) ready(j *job, p search.Problem) (err error) {
	t := b.t
	if b.weightBytes(); b.bench == nil {
		if b.bench, err = measure.NewGemmBench(t.ctx, b.l, t.workers, b.size, t.o.Seed); err != nil {
			return err
		}
	}
	active, err := t.workers.On(j.pus)
	if err != nil {
		return err
	}
	if _, err := b.l.SetActive(active); err != nil {
		return err
	}
	var groups *pool.Grouping
	if j.shape.PerRank {
		groups = t.workers.Grouping()
	}
	b.bench.Use(groups)
	t.rec.Use(b.bench)
	return b.bench.Prepare(j.key, p.Anchors[len(p.Anchors)-1], p.Compute)
}

func (b *tableBench) free() {
	if b.bench != nil {
		b.bench.Free()
	}
}

// jobs returns the searches with their shares of the time: half divided evenly, half by the cost of
// the shape in a forward of its phase.
func (t *partition) jobs() []*job {
	var jobs []*job
	for _, phase := range slices.Backward(t.served()) {
		total := 0.0
		for _, c := range t.shapes {
			total += t.cost(phase, c.WeightKey)
		}
		for s, set := range t.phases[phase].sets {
			jobs = append(jobs, t.jobsOn(phase, s, set.PUs, total)...)
		}
	}
	return jobs
}

// jobsOn returns the searches of one set of PUs, one for each worker kind.
func (t *partition) jobsOn(phase, s int, pus plans.PUSet, total float64) (jobs []*job) {
	for _, class := range t.classes() {
		own := slices.DeleteFunc(slices.Clone(pus), func(pu int) bool { return t.def.ClassOf(pu) != class })
		if len(own) == 0 {
			continue
		}
		shapes, err := t.def.TableShapes(own)
		if err != nil {
			panic(err) // the default plan is valid
		}
		// Shapes of the same K are adjacent, because they share packed weights and hints.
		slices.SortStableFunc(shapes, func(a, b plans.TableShape) int {
			return cmp.Or(cmp.Compare(a.K, b.K),
				cmp.Compare(a.Type, b.Type))
		})
		for _, c := range shapes {
			even := 1 / float64(len(shapes))
			// each set gets half the time of the one before, because the best is most likely to win
			part := math.Ldexp(1, -min(s, 3))
			if c.Threads > 0 { // else no rank has a worker of this kind
				jobs = append(jobs, &job{phase: phase, set: s, class: class, pus: own, key: c.WeightKey, shape: c,
					weight: part * (even + t.cost(phase, c.WeightKey)/total)})
			}
		}
	}
	return jobs
}

// holds reports whether some rank has a weight of this shape.
func (t *partition) holds(w plans.WeightShape, k plans.WeightKey) bool {
	if w.Role == plans.RoleEmbed {
		return false
	}
	for r := range t.def.Ranks {
		if t.def.KeyOf(r, w) == k {
			return true
		}
	}
	return false
}

// cost returns the cost of a weight shape in one forward, on a rank that holds it: bytes of one row
// in decode, multiplications in prefill, where the head computes one row.
func (t *partition) cost(phase int, k plans.WeightKey) float64 {
	sum := 0.0
	for _, w := range t.shape.Weights {
		if !t.holds(w, k) {
			continue
		}
		one := t.shape.Read(w, 1) * float64(measure.PackedBytes(k))
		if phase == prefill {
			one = t.shape.PerRow(w) * float64(k.N) * float64(k.K)
			if w.Role == "head" {
				one /= float64(t.def.Chunk)
			}
		}
		sum += one
	}
	return sum
}

// leastBudget is the minimum time of a search.
const leastBudget = 10 * time.Millisecond

// searchTable searches one table within a budget. share is its time in seconds if no earlier table
// left any. Anchors that an earlier run finished are reused.
func (t *partition) searchTable(b *tableBench, j *job, earlier []*job, budget time.Duration, share float64) error {
	p, err := t.problem(b.weightBytes(), j, earlier)
	if err != nil {
		return err
	}
	name := t.problemName(j, &p)
	share /= float64(len(p.Anchors))
	kept, more := t.wisdom.Lookup(name, p, t.effort, share)
	j.kept = len(kept)
	p.Known = append(p.Known, kept...)
	p.Hints = func(m int) []plans.Schedule {
		out := hints(j, earlier, m)
		if s, ok := more[m]; ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
		return out
	}
	t.rec.On(j.pus.String())
	if budget < leastBudget {
		budget = 0 // keep the incumbents
	} else if !p.Complete() {
		if err := b.ready(j, p); err != nil {
			return err
		}
	}
	base, began := t.evidence.Trials, t.elapsed()
	j.result, err = search.Search(t.ctx, p, t.rec, search.Options{
		Strategy: t.o.Strategy, Effort: t.effort, Seed: t.o.Seed, Budget: budget, Clock: t.elapsed,
		Progress: func(e search.Event) {
			t.evidence.Trials = base + e.Trials
			t.say("kernels", eventText(e), false)
		},
	})
	if err != nil {
		return err
	}
	t.keepTrials(name, j.result, p.Known, share)
	t.evidence.Trials = base + j.result.Trials
	j.took = t.elapsed() - began
	t.record(j)
	return nil
}

// problem returns the search problem of a job, on operands that hold the given bytes of weights.
func (t *partition) problem(weightBytes int, j *job, earlier []*job) (search.Problem, error) {
	ph, isa, ways := &t.phases[j.phase], t.def.ISAOf(j.class), search.Polymerizations(j.shape.Threads)
	if len(t.def.Classes) > 0 {
		ways = [][2]int{{0, 0}} // products are divided by throughput
	}
	compute := j.shape.Compute
	wt, err := microkernel.ParseWeightType(j.key.Type)
	if err != nil {
		return search.Problem{}, err
	}
	p := search.Problem{
		Phase: ph.name, Key: j.key, Compute: compute, Threads: j.shape.Threads, Anchors: t.anchors(j),
		Kernels: search.Candidates(t.o.Profile.Features(), isa, compute, wt),
		Ways:    ways, Ceiling: t.ceiling(compute, j.pus, j.shape.Threads),
		Incumbent: func(m int) plans.Schedule { return t.incumbent(j, m) },
		Hints:     func(m int) []plans.Schedule { return hints(j, earlier, m) },
		MaxColumns: func(m int) int {
			panel := microkernel.Layout{Type: wt, N: microkernel.PanelWidth, K: j.key.K}.PanelStride()
			return min(t.widestOutput(m), weightBytes/panel*microkernel.PanelWidth)
		},
		Known: known(j, earlier),
	}
	p.CacheL1, p.CacheL2 = t.caches(ranking.ActiveSet{PUs: j.pus})
	return p, nil
}

// eventText describes the progress of a search, the best result first, because a terminal truncates
// the end of a line.
func eventText(e search.Event) string {
	text := fmt.Sprintf("%s %s m %d, best %.4g GFLOP/s", e.Phase, e.Key, e.M, e.GFLOPS)
	if e.OfCeiling > 0 {
		text += fmt.Sprintf(", %.0f %% of the ceiling", 100*e.OfCeiling)
	}
	return fmt.Sprintf("%s; %s: %s", text, e.Stage, e.Schedule)
}

// record writes a finished table into the evidence.
func (t *partition) record(j *job) {
	r := j.result
	name := fmt.Sprintf("%s %s on PUs %s", t.phases[j.phase].name, j.key, j.pus)
	for _, a := range r.Anchors {
		if len(a.Seconds) > 0 && j.set == 0 {
			t.evidence.Kernels = append(t.evidence.Kernels, evidence.Trial{Phase: t.phases[j.phase].name,
				Weight: j.key, M: a.M,
				Schedule: a.Schedule.String(), Tried: a.Tried, Seconds: profiles.NewFigure("s", a.Seconds)})
		}
	}
	t.evidence.Searches = append(t.evidence.Searches, evidence.Search{Phase: t.phases[j.phase].name,
		PUs:     j.pus.String(),
		Weight:  j.key,
		Lengths: len(r.Anchors) - r.Cut, Trials: r.Trials, Noise: num.Significant(r.Noise), Reopened: r.Reopened,
		Reused: r.Reused, Cut: r.Cut, Kept: j.kept, Seconds: num.Significant(j.took.Seconds())})
	if t.rig == nil {
		t.noise = append(t.noise, r.Noise)
	}
	if r.Cut > 0 {
		t.reject(name, fmt.Sprintf("%d of %d lengths were not searched: the budget was over", r.Cut, len(r.Anchors)))
	}
	for _, x := range r.Rejected {
		t.reject(x.Candidate, x.Reason)
	}
}

// anchors returns the M of a job: up to batch-max in decode and up to seq-max in prefill. The head
// has few in prefill, because it computes the last token only unless all logits are requested.
func (t *partition) anchors(j *job) []int {
	if j.phase == decode {
		return search.AnchorLengths(t.def.BatchMax, t.effort.Octave)
	}
	chunk := min(t.def.SeqMax, t.def.Chunk)
	out := search.AnchorLengths(min(chunk, 16), 1)
	for _, w := range t.shape.Weights {
		if t.holds(w, j.key) && w.Role != "head" {
			out = search.AnchorLengths(chunk, t.effort.Octave)
		}
	}
	if chunk > out[len(out)-1] {
		out = append(out, chunk)
	}
	if t.def.SeqMax > chunk {
		// forwards have at most a chunk of rows; one larger M bounds the open range
		out = append(out, t.def.SeqMax)
	}
	return out
}

// incumbent returns the default schedule, without its static scheme if that was made for another
// number of threads.
func (t *partition) incumbent(j *job, m int) plans.Schedule {
	ph := phaseOf(t.def, j.phase)
	s, _ := ph.LookupOf(j.class, j.key, m)
	if s.WaysM*s.WaysN != j.shape.Threads {
		s.WaysM, s.WaysN = 0, 0
	}
	return s
}

// hints returns the winners for m of shapes with the same K and type in the same phase on the same
// PUs, because most of a schedule does not depend on N, and of the same shape on other PUs.
func hints(j *job, earlier []*job, m int) []plans.Schedule {
	var out []plans.Schedule
	for _, e := range slices.Backward(earlier) {
		alike := e.set == j.set && e.key.K == j.key.K && e.key.Type == j.key.Type
		if e.phase != j.phase || e.class != j.class || !alike && (e.set == j.set || e.key != j.key) {
			continue
		}
		ph := plans.Phase{Tables: []plans.Table{{WeightKey: e.key, Rules: e.result.Rules}}}
		s, ok := ph.Lookup(e.key, m)
		if s.WaysM*s.WaysN != j.shape.Threads {
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
func known(j *job, earlier []*job) []search.Anchor {
	if j.phase == decode {
		return nil
	}
	for _, e := range earlier {
		if e.phase == decode && e.class == j.class && e.key == j.key && slices.Equal(e.pus, j.pus) {
			return slices.DeleteFunc(slices.Clone(e.result.Anchors),
				func(a search.Anchor) bool { return len(a.Seconds) == 0 })
		}
	}
	return nil
}
