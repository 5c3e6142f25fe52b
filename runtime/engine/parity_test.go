package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/pool"
	"sandwich/runtime/refdata"
)

// reference is the sidecar of a parity model.
type reference struct {
	set       string // its folder
	Model     string
	NVocab    int `json:"n_vocab"`
	Sequences []struct {
		Length int
		Tokens []int32
		Shape  [2]int
		Stored stored `json:"stored_positions"`
		Refs   map[string]struct {
			File          string
			Greedy        []int32
			GreedyMargins []float64 `json:"greedy_margins"`
		}
	}
}

// stored is the positions whose logits a reference has. Where the text does not list them, they are
// the last ones.
type stored []int

func (s *stored) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	return json.Unmarshal(b, (*[]int)(s))
}

// row is that of a position among n rows for a sequence of so many tokens; negative where the
// reference has none.
func (s stored) row(pos, n, tokens int) int {
	if s == nil {
		return pos - (tokens - n)
	}
	return slices.Index(s, pos)
}

// tolerance is a row of the table in the README of the parity data.
type tolerance struct {
	max, rms, kl, argmax float64
	margin               float64 // greedy tokens must agree while every margin is above this
	// of the positions' maxima, where two nearly equal experts make max, rms and kl say nothing;
	// else 0
	median float64
}

var (
	exactTolerance = tolerance{5e-4, 5e-5, 1e-8, 1, 0, 0}
	f16KVTolerance = tolerance{0.15, 0.02, 5e-5, 0.99, 0, 0}
	q8KVTolerance  = tolerance{1.0, 0.15, 0.01, 0.90, 0.5, 0} // our own, half of int8: no reference has such a cache
	bf16Tolerance  = tolerance{0.5, 0.1, 2e-3, 0.97, 0.25, 0}
	int8Tolerance  = tolerance{2.0, 0.3, 0.02, 0.90, 1.0, 0}
	moeTolerance   = tolerance{math.Inf(1), math.Inf(1), math.Inf(1), 0.88, 1.2, 1.2} // int8 with experts
)

// TestParity runs every model of the reference set that this program has kernels for, exactly
// (float32 everywhere) and on the default path, against logits and greedy tokens of an independent
// implementation.
func TestParity(t *testing.T) {
	skipUnderRace(t)
	for _, name := range []string{
		"llama-f32", "llama-f16", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-q4_1", "llama-q5_0", "llama-q5_1",
		"llama-iq4_nl",
		"llama-q2_k", "llama-q3_k", "llama-q4_k", "llama-q5_k", "llama-q6_k", "llama-tied-f32", "qwen2-f32",
		"qwen3-f32", "qwen3-q8_0", "qwen3-q4_k_m",
		"qwen3moe-f32", "qwen3moe-q8_0", "qwen3moe-q4_k_m",
	} {
		t.Run(name, func(t *testing.T) {
			ref, file := openReference(t, "parity", name)
			for _, arm := range []struct {
				name string
				o    heuristic.Options
				tol  tolerance
			}{
				{"exact", heuristic.Options{Compute: "f32", KV: "f32"}, exactTolerance},
				{"avx2", heuristic.Options{Compute: "f32", KV: "f32", ISA: "avx2"}, exactTolerance},
				{"f16kv", heuristic.Options{Compute: "f32"}, f16KVTolerance},
				{"q8kv", heuristic.Options{Compute: "f32", KV: "q8_0"}, q8KVTolerance},
				{"default", heuristic.Options{}, int8Tolerance},
				{"int8", heuristic.Options{Compute: "int8"}, int8Tolerance},
				{"bf16", heuristic.Options{Compute: "bf16"}, bf16Tolerance},
			} {
				if arm.o.Compute == "bf16" && (name != "llama-bf16" || !hasPairs()) {
					continue
				}
				if strings.HasPrefix(name, "qwen3moe-q") && arm.tol == int8Tolerance || strings.HasPrefix(name,
					"qwen3moe") && arm.tol == q8KVTolerance {
					arm.tol = moeTolerance
				}
				t.Run(arm.name, func(t *testing.T) {
					r := openTestRunner(t, file, arm.o, 64)
					defer r.Close()
					r.Lead(func(l *pool.Leader) { checkParity(t, ref, NewSequence(r, l), arm.tol) })
				})
			}
		})
	}
}

// openReference reads the sidecar of a model of a reference set and opens the model. It skips the
// test where the model is not here.
func openReference(t *testing.T, set, name string) (reference, *gguf.File) {
	t.Helper()
	ref := reference{set: set}
	readSidecar(t, set, name, &ref)
	return ref, openModel(t, set, ref.Model)
}

// readSidecar decodes the sidecar of a model of a reference set.
func readSidecar(t *testing.T, set, name string, ref any) {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, set+"/ref/"+name+".json"))
	if err == nil {
		err = json.Unmarshal(text, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openModel opens a model of a reference set until the test ends.
func openModel(t *testing.T, set, name string) *gguf.File {
	t.Helper()
	file, err := gguf.Open(refdata.Path(t, set+"/"+name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// openTestRunner opens a model under the default plan of this host with options, room for 576
// positions.
func openTestRunner(t testing.TB, file *gguf.File, o heuristic.Options, chunk int) *forward.Runner {
	t.Helper()
	return openTestRunnerBlocks(t, file, o, chunk, 9)
}

func openTestRunnerBlocks(t testing.TB, file *gguf.File, o heuristic.Options, chunk, blocks int) *forward.Runner {
	t.Helper()
	return openTestRunnerContext(t, file, o, chunk, blocks, 0)
}

// openTestRunnerContext opens a model with workers that are not pinned where the options choose the
// workers, or more threads than this process has PUs.
func openTestRunnerContext(t testing.TB, file *gguf.File, o heuristic.Options, chunk, blocks,
	context int) *forward.Runner {
	t.Helper()
	if o.Service == nil && o.Threads > liveHost(t).UsablePUs().Count() {
		o.Service, o.Threads = crews(o.Threads), 0
	}
	plan, err := planFor(t, file, o)
	if errors.Is(err, plans.ErrISA) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	plan.Chunk = chunk
	r, err := forward.Open(t.Context(), forward.Options{Options: exec.Options{File: file, Plan: plan, Blocks: blocks,
		LogitRows: chunk, Sequences: 8, Context: context,
		Unpinned: o.Service != nil, Sync: testSync}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testSync is how the ranks of openTestRunner wait for each other.
var testSync = tp.SyncB

// liveHost returns the profile of this machine.
func liveHost(t testing.TB) *profiles.Profile {
	t.Helper()
	profile, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// planFor returns the default plan of this host for a model.
func planFor(t testing.TB, file *gguf.File, o heuristic.Options) (*plans.Plan, error) {
	t.Helper()
	shape, err := modelshape.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	return heuristic.Default(liveHost(t), shape, o)
}

func checkParity(t *testing.T, ref reference, line *Sequence, tol tolerance) {
	var d distance
	for _, seq := range ref.Sequences {
		want := seq.Refs["ref_f32_dequant"]
		if testing.Short() {
			if seq.Length > 7 {
				continue // under an emulator
			}
			want.Greedy = want.Greedy[:16]
		}
		rows := readFloats(t, refdata.Path(t, ref.set+"/"+want.File))
		stored := func(pos int) int { return seq.Stored.row(pos, seq.Shape[0], len(seq.Tokens)) }
		next, err := d.feed(line, seq.Tokens, stored, rows, ref.NVocab)
		if err != nil {
			t.Error(err)
			return
		}
		checkGreedy(t, line, seq.Length, next, want.Greedy, want.GreedyMargins, tol.margin)
	}
	d.check(t, tol)
}

func checkGreedy(
	t *testing.T, line *Sequence, length int, next int32, want []int32, margins []float64, margin float64,
) {
	for i, w := range want {
		if margins[i] <= margin {
			return
		}
		if next != w {
			t.Errorf("sequence of %d: greedy token %d is %d, the reference has %d (margin %.3f)", length, i, next,
				w, margins[i])
			return
		}
		logits, err := line.Step(next)
		if err != nil {
			t.Error(err)
			return
		}
		next = argmax(logits)
	}
}

// distance collects how far logits are from their reference.
type distance struct {
	max, square, kl float64
	elems, rows     int
	same            int
	worst           []float64 // of each position
}

// feed reads a text from an empty line and adds the logits whose reference is stored: row
// stored(pos) of rows, or none where that is negative. It returns the likeliest token behind the
// text.
func (d *distance) feed(line *Sequence, text []int32, stored func(pos int) int, rows []float32, vocab int) (next int32,
	err error) {
	line.Reset()
	err = line.Feed(text, 64, AllLogits, func(pos int, logits []float32) error {
		if i := stored(pos); i >= 0 {
			d.add(logits, rows[i*vocab:(i+1)*vocab])
		}
		next = argmax(logits)
		return nil
	})
	return next, err
}

func (d *distance) add(got, want []float32) {
	worst := 0.0
	for i := range got {
		e := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(e) {
			e = math.Inf(1)
		}
		worst = max(worst, e)
		d.square += e * e
	}
	d.max = max(d.max, worst)
	d.worst = append(d.worst, worst)
	d.elems += len(got)
	d.rows++
	d.kl += divergence(want, got)
	if argmax(got) == argmax(want) {
		d.same++
	}
}

func (d *distance) check(t *testing.T, tol tolerance) {
	rms, kl, same := math.Sqrt(d.square/float64(d.elems)), d.kl/float64(d.rows), float64(d.same)/float64(d.rows)
	t.Logf("%d rows: max %.2g rms %.2g KL %.2g same %.3f", d.rows, d.max, rms, kl, same)
	enough := d.same >= int(tol.argmax*float64(d.rows)) // of few rows one may differ, unless none may
	if !(d.max <= tol.max && rms <= tol.rms && kl <= tol.kl && enough) {
		t.Errorf("logits differ from the reference: max %.3g (allowed %.3g), rms %.3g (%.3g), mean KL %.3g "+
			"(%.3g), equal argmax %.3f (%.3f)",
			d.max, tol.max, rms, tol.rms, kl, tol.kl, same, tol.argmax)
	}
	slices.Sort(d.worst)
	if median := d.worst[len(d.worst)/2]; tol.median > 0 && !(median <= tol.median) {
		t.Errorf("the median of the positions' largest differences is %.3g (allowed %.3g)", median, tol.median)
	}
}

func divergence(p, q []float32) (kl float64) {
	lp, lq := logSum(p), logSum(q)
	for i := range p {
		a, b := float64(p[i])-lp, float64(q[i])-lq
		kl += math.Exp(a) * (a - b)
	}
	return kl
}

func logSum(x []float32) float64 {
	m := float64(x[argmax(x)])
	s := 0.0
	for _, v := range x {
		s += math.Exp(float64(v) - m)
	}
	return m + math.Log(s)
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}

func readFloats(t *testing.T, path string) []float32 {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}
