package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/run"
	"sandwich/tuner/trials"
)

// measured runs the stage alone on the default plan of a small model. It returns the times and the
// number of trials that were answered from the journal.
func measured(t *testing.T, family, journal string, context int, resume bool) ([]evidence.Steps, int) {
	t.Helper()
	p, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("no family %s", family)
	}
	c.Context = context
	shape, err := synth.Shape(c, synth.Uniform(gguf.F32))
	if err != nil {
		t.Fatal(err)
	}
	r := run.New(run.Options{Budget: time.Hour, Seed: 1, Build: "test", Journal: journal, Resume: resume})
	if err := r.Open(trials.Key{Model: family}); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := partition.NewLoader(r, &partition.Subject{Profile: p, Config: &c, Type: synth.Uniform(gguf.F32),
		Plan: heuristic.Options{SeqMax: 32, BatchMax: 2, Threads: 1}}, shape)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Open(t.Context(), l.Home()); err != nil {
		t.Fatal(err)
	}
	r.Began, r.Budget = time.Now(), time.Minute // more than the stage takes
	out, err := Measure(t.Context(), Input{Run: r, Loader: l, Result: finals.Default(l.Home())})
	if err != nil {
		t.Fatal(err)
	}
	return out, r.Recorder.Hits()
}

// TestMeasure checks the times of decode steps of dense, recurrent and mixture-of-experts models at
// each context length that the model has, and that a resumed run repeats none.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		family  string
		context int
		depths  []int
	}{{"llama", 4096, []int{128, 2048}}, {"lfm2", 150, []int{128}}, {"qwen3moe", 150, []int{128}},
		{"llama", 100, nil}} {
		journal := filepath.Join(t.TempDir(), "x.journal")
		first, _ := measured(t, c.family, journal, c.context, false)
		if len(first) > len(c.depths) {
			t.Errorf("%s: %d context lengths, want %v", c.family, len(first), c.depths)
		}
		for i, s := range first {
			if s.Positions != c.depths[i] || len(s.Seconds) > 2 || s.Seconds[0] <= 0 {
				t.Errorf("%s: %+v", c.family, s)
			}
		}
		text, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		if c.depths == nil {
			continue
		}
		lines := strings.Count(string(text), "\n") - 1
		if _, hits := measured(t, c.family, journal, c.context, true); hits != lines || lines == 0 {
			t.Errorf("%s: the resumed run took %d trials from the journal, which has %d", c.family, hits, lines)
		}
	}
}
