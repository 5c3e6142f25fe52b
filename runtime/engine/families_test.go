package engine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/modelfile"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/pool"
)

// familyFile is the small model of a family, as it is but for its vocabulary, and for windows that
// end within a short text.
func familyFile(t testing.TB, family string, typ gguf.Type) *gguf.File {
	t.Helper()
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("no family %s", family)
	}
	if c.Vocab, c.Context = 1003, 1024; c.Windows.Size > 0 {
		c.Windows.Size = 70
	}
	return fileOf(t, c, typ)
}

func fileOf(t testing.TB, c model.Config, typ gguf.Type) *gguf.File {
	t.Helper()
	var out bytes.Buffer
	if err := synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(typ), 5, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFamiliesBitEqual checks rule 6 for every family: chunks, threads, vector width and batches.
// Batches are small: TestBitEqual checks products of more rows.
func TestFamiliesBitEqual(t *testing.T) {
	skipUnderRace(t)
	for i, family := range synth.Families() {
		t.Run(family, func(t *testing.T) {
			if c, _ := synth.Tiny(family); c.AttnTemperature > 0 || c.Windows.Chunk > 0 { // distant positions
				long(t)
			}
			o, typ := heuristic.Options{Compute: "f32", KV: "f32", Threads: 1}, gguf.F32
			if i%2 == 1 {
				o, typ = heuristic.Options{Compute: "int8", Threads: 1}, gguf.Q8_0
			}
			file := familyFile(t, family, typ)
			want := logitsAlone(t, file, o, 512)
			narrow := o
			narrow.ISA = "avx2"
			same(t, "avx2, chunk 64", want, logitsAlone(t, file, narrow, 64))
			o.Threads = 2
			same(t, "two threads, chunk 7", want, logitsAlone(t, file, o, 7))
			same(t, "batch of 4", want, logitsInBatch(t, file, o, 4))
		})
	}
}

// TestFamiliesRanks checks that a family that can be divided into ranks gives the results of one
// rank up to the order of sums, with the same bits for every number of threads, and that other
// families are refused by name.
func TestFamiliesRanks(t *testing.T) {
	skipUnderRace(t)
	cut := 0
	for _, family := range synth.Families() {
		t.Run(family, func(t *testing.T) {
			file := familyFile(t, family, gguf.F32)
			o := heuristic.Options{Compute: "f32", KV: "f32", Threads: 1}
			want := logitsAlone(t, file, o, 512)
			o.Service = crews(1, 1)
			if why := "heads of " + file.Architecture() + " models"; belongsTogether(t, file) {
				if _, err := planFor(t, file, o); err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("the plan of two ranks: %v, want a refusal that names %s", err, why)
				}
				return
			}
			cut++
			two := logitsAlone(t, file, o, 64)
			o.Service = crews(1, 1, 1, 1)
			for ranks, got := range map[string][][]float32{"two": two, "four": logitsAlone(t, file, o, 64)} {
				for i := range want {
					for j := range want[i] {
						if d := math.Abs(float64(want[i][j] - got[i][j])); !(d < 2e-3) {
							t.Fatalf("step %d, token %d: %g in %s ranks, %g whole", i, j, got[i][j], ranks, want[i][j])
						}
					}
				}
			}
			o.Service = crews(2, 2)
			same(t, fmt.Sprintf("%s in two ranks of two threads", family), two, logitsAlone(t, file, o, 512))
		})
	}
	if cut < 12 {
		t.Errorf("only %d families can be cut", cut)
	}
}

// belongsTogether tells whether a model has matrices that no rank can have a part of.
func belongsTogether(t *testing.T, file *gguf.File) bool {
	t.Helper()
	shape, err := modelshape.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(shape.Weights, func(w plans.WeightShape) bool {
		return strings.HasPrefix(w.Role, plans.RoleWhole)
	})
}

// TestFamiliesOracle compares the families with their ops in plain Go and float64, far beyond their
// windows. The oracle has no experts and no recurrences; TestParity2 compares families that have
// them with other implementations.
func TestFamiliesOracle(t *testing.T) {
	skipUnderRace(t)
	compared := 0
	for _, family := range synth.Families() {
		c, _ := synth.Tiny(family)
		if c.Experts.Count > 0 {
			continue
		}
		c.Hidden, c.Heads, c.FFN, c.Vocab, c.Windows.Size = 64, 4, 96, 320, min(24, c.Windows.Size)
		c.KVHeads, c.FFNOf = min(c.KVHeads, c.Heads), nil
		file := fileOf(t, c, gguf.F32)
		m, err := modelfile.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		recurs := func(op model.Op) bool { return op.Conv != nil || op.Kind == model.OpOutGate }
		if slices.ContainsFunc(m.Ops, recurs) {
			continue
		}
		compared++
		t.Run(family, func(t *testing.T) { compareFamily(t, file, m) })
	}
	if compared < 15 {
		t.Errorf("only %d families were compared", compared)
	}
}

func compareFamily(t *testing.T, file *gguf.File, m *model.Model) {
	prompt := exactPrompt(1)[:140]
	for i := range prompt {
		prompt[i] %= 320
	}
	want := newOracle(m).forward(prompt)
	r := openTestRunner(t, file, heuristic.Options{Compute: "f32", KV: "f32", Threads: 2}, 64)
	defer r.Close()
	var err error
	r.Lead(func(l *pool.Leader) {
		err = NewSequence(r, l).Feed(prompt, 64, LastLogits, func(_ int, got []float32) error {
			for i, w := range want {
				if d := math.Abs(float64(got[i]) - w); d > 2e-3*max(1, math.Abs(w)) {
					return fmt.Errorf("logit %d is %v, the oracle's %v", i, got[i], w)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}
