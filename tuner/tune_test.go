package tuner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/check"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/plans/summary"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/partition"
	"sandwich/tuner/run"
	"sandwich/tuner/trials"
)

// ticks returns a clock that advances by a step at each reading, so that a budget ends after the
// same number of readings on every machine, however busy it is.
func ticks(step time.Duration) func() time.Time {
	began, readings := time.Now(), new(atomic.Int64)
	return func() time.Time { return began.Add(time.Duration(readings.Add(1)) * step) }
}

// tiny returns options for a model that a test tunes in seconds. The budget is below that for which
// anchors are measured. It suffices to search tables, but not to race whole configurations.
func tiny(t *testing.T) Options {
	t.Helper()
	p, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{Name: "tiny", Arch: "llama", Eps: 1e-5, RopeBase: 10000,
		Dims: model.Dims{Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Vocab: 400, Context: 256}}
	return Options{Subject: partition.Subject{Profile: p, Config: &c, Type: synth.Uniform(gguf.Q8_0),
		Plan: heuristic.Options{SeqMax: 64, BatchMax: 4}},
		Run: run.Options{Budget: 50 * time.Second, Now: ticks(2 * time.Millisecond), Seed: 1, Build: "test"}}
}

// unhurried sets a clock by which every stage ends before its part of the budget is used up.
func unhurried(o Options) Options {
	o.Run.Now = ticks(10 * time.Microsecond)
	return o
}

func TestTuneMakesAValidPlan(t *testing.T) {
	o := unhurried(tiny(t))
	dir := t.TempDir()
	out := filepath.Join(dir, "tiny.plan")
	o.Run.Journal = trials.JournalPath(out)
	stages := map[string]bool{}
	o.Run.Progress = func(p run.Progress) { stages[p.Stage] = true; _ = p.String() }
	b, err := Tune(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if b.Plan.SeqMax != 64 || b.Plan.BatchMax != 4 {
		t.Errorf("plan %+v", b.Plan)
	}
	if err := b.Write(out); err != nil {
		t.Fatal(err)
	}
	back, err := bundle.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(*o.Subject.Config, o.Subject.Type)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Bundle(back, o.Subject.Profile, &shape); err != nil {
		t.Error(err)
	}
	ev := back.Evidence
	if !b.Plan.Tuned || len(ev.Outcomes()) != 2 {
		t.Errorf("tuned %v, outcomes %+v", b.Plan.Tuned, ev.Outcomes())
	}
	if ev.Trials == 0 || len(ev.Kernels) == 0 || len(ev.Finalists) == 0 || ev.Strategy != "sandwich" ||
		ev.Effort != "quick" || ev.Spent <= 0 {
		t.Errorf("evidence %+v", ev)
	}
	tables := 0
	for ph, p := range map[string]*plans.Phase{"prefill": &b.Plan.Prefill, "decode": &b.Plan.Decode} {
		for _, table := range p.Tables {
			if tables++; !slices.ContainsFunc(ev.Searches, func(s evidence.Search) bool {
				return s.Phase == ph &&
					s.Weight == table.WeightKey && s.Lengths+s.Cut > 0
			}) {
				t.Errorf("the evidence does not say how the %s table of %s was found", ph, table.WeightKey)
			}
			if last := table.Rules[len(table.Rules)-1]; last.MHi != 0 {
				t.Errorf("the last rule of %s ends at m %d", table.WeightKey, last.MHi)
			}
		}
	}
	if tables == 0 || ev.EarlyStop == "" {
		t.Errorf("%d tables, early stop %q", tables, ev.EarlyStop)
	}
	unpinned := false
	for _, a := range ev.Finalists {
		unpinned = unpinned || strings.Contains(a.Name, "unpinned")
		if len(a.Samples) == 0 {
			t.Errorf("arm %s has no sample", a.Name)
		}
	}
	if !unpinned {
		t.Error("no unpinned arm")
	}
	for _, s := range []string{"loading", "kernels", "finalists"} {
		if !stages[s] {
			t.Errorf("stage %q was never reported", s)
		}
	}
	if _, err := os.Stat(o.Run.Journal); err != nil {
		t.Error("the journal is gone before the plan is written")
	}
}

// TestTuneKeepsThePathOfTheRates checks that bf16 weights are tuned in the path that follows from
// their measured rates, and that the bundle records it.
func TestTuneKeepsThePathOfTheRates(t *testing.T) {
	o := tiny(t)
	o.Subject.Type = synth.Uniform(gguf.BF16)
	isa := o.Subject.Profile.Features().Best()
	if len(microkernel.Space(o.Subject.Profile.Features(), isa, microkernel.ComputeBF16, microkernel.BF16)) == 0 {
		t.Skip("this CPU has no dot products of bf16")
	}
	for typ, rate := range map[string]float64{"f32": 200e9, "bf16": 400e9} {
		o.Subject.Profile.Ceilings = append(o.Subject.Profile.Ceilings, profiles.Ceiling{Kind: profiles.Compute,
			ISA:  isa.String(),
			Type: typ, PUs: 1,
			Figure: profiles.Figure{Median: rate, N: 9, Unit: "FLOP/s"}})
	}
	b, err := Tune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s := summary.Of(b); s.Exact || !strings.Contains(s.Rounding, "bf16 reaches 400 GFLOP/s on 1 PU, 2.00 times "+
		"the 200 of f32") {
		t.Errorf("exact %v: %s", s.Exact, s.Rounding)
	}
	for _, w := range b.Plan.Weights {
		if w.Compute != microkernel.ComputeBF16 {
			t.Errorf("weight %v", w)
		}
	}
}

// TestTuneForRanks checks that tables are those of the shards of the ranks, and that the plan keeps
// the ranks regardless of the active PUs.
func TestTuneForRanks(t *testing.T) {
	o := tiny(t)
	o.Subject.Plan.TP = 2
	if o.Subject.Profile.CorePUs().Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	b, err := Tune(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := &b.Plan
	if p.Exact() || p.TP() != 2 {
		t.Errorf("plan of %d ranks, exact %v, tuned %v", p.TP(), p.Exact(), p.Tuned)
	}
	if _, ok := p.Decode.Table(plans.WeightKey{N: 64, K: 48, Type: "q8_0"}); ok {
		t.Error("down is cut in the middle of a block")
	}
	o.Subject.Plan.TP = 1000
	if _, err := Tune(context.Background(), o); err == nil || !strings.Contains(err.Error(), "1000 ranks") {
		t.Errorf("1000 ranks: %v", err)
	}
}

func TestTuneIsInterruptedAndResumed(t *testing.T) {
	o := tiny(t)
	o.Run.Journal = filepath.Join(t.TempDir(), "x.journal")
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("interrupted")
	o.Run.Progress = func(p run.Progress) {
		if p.Stage == "kernels" && p.Trials > 10 {
			cancel(stop)
		}
	}
	if _, err := Tune(ctx, o); !errors.Is(err, stop) {
		t.Fatalf("got %v", err)
	}
	before, err := os.ReadFile(o.Run.Journal)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(before), "\n"); n < 10 {
		t.Fatalf("the journal has %d lines", n)
	}
	o.Run.Progress, o.Run.Resume = nil, true
	if _, err := Tune(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(o.Run.Journal)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(after), string(before)) {
		t.Error("the journal was not continued")
	}
	o.Run.Seed = 2
	if _, err := Tune(context.Background(), o); !errors.Is(err, trials.ErrJournal) {
		t.Errorf("another seed: %v", err)
	}
}

func TestTuneRefusals(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"no profile": func(o *Options) { o.Subject.Profile = nil },
		"no model":   func(o *Options) { o.Subject.Config = nil },
		"budget":     func(o *Options) { o.Run.Budget = -1 },
		"effort":     func(o *Options) { o.Search.Effort = "herculean" },
		"strategy":   func(o *Options) { o.Search.Strategy = "magic" },
		"compute":    func(o *Options) { o.Subject.Plan.Compute = "f64" },
		"threads":    func(o *Options) { o.Subject.Plan.Threads = 1 << 20 },
	} {
		o := tiny(t)
		spoil(&o)
		if _, err := Tune(context.Background(), o); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	foreign := tiny(t)
	p, err := profiles.Builtin("kunpeng920")
	if err != nil {
		t.Fatal(err)
	}
	foreign.Subject.Profile = p
	if _, err := Tune(context.Background(), foreign); !errors.Is(err, plans.ErrForeignHost) {
		t.Errorf("a foreign profile: %v", err)
	}
}
