package trials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/tuner/search"
)

var testKey = Key{Fingerprint: "f", Build: "b", Model: "m", Seed: 1, Flags: "effort=quick"}

// counter computes times by a formula and counts the calls. It fails permanently after some trials.
type counter struct {
	trials int
	until  int
	names  map[string]int
	rec    *Recorder
}

var errKilled = errors.New("killed")

func (c *counter) Time(t search.Trial) (search.Sample, error) {
	if c.until > 0 && c.trials >= c.until {
		return search.Sample{}, errKilled
	}
	c.trials++
	if c.names != nil {
		name := c.rec.trialName(t)
		c.names[fmt.Sprint(name, " ", c.rec.asked[name]-1)]++
	}
	x := 1e-3 + float64((t.Schedule.BM*7+t.Schedule.BN*3+t.Schedule.BK+t.Schedule.Kernel.MR*11)%97)*1e-5
	return t.Limit.Repeat(func() (float64, error) { return x, nil })
}

func smallProblem() search.Problem {
	key := plans.WeightKey{N: 256, K: 256, Type: "f32"}
	return search.Problem{Phase: "decode", Key: key, Threads: 2, Anchors: []int{1, 4, 16},
		Kernels: search.Candidates(microkernel.HasAVX2|microkernel.HasAVX512, microkernel.AVX512,
			microkernel.ComputeF32, microkernel.F32),
		Incumbent: func(int) plans.Schedule {
			return plans.Schedule{Kernel: microkernel.Spec{ISA: microkernel.AVX512, MR: 4, NR: 16, KU: 4},
				BM: 4, BN: 32}
		}}
}

func searchWith(j *Journal, c *counter) (*search.Result, *Recorder, error) {
	rec := NewRecorder(j, time.Now)
	rec.Use(c)
	c.rec = rec
	r, err := search.Search(context.Background(), smallProblem(), rec, search.Options{Effort: search.Quick,
		Budget: time.Hour})
	return r, rec, err
}

func TestResumeRepeatsNoFinishedTrial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.plan.journal")
	whole, _, err := searchWith(nil, &counter{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(path, testKey, false)
	if err != nil {
		t.Fatal(err)
	}
	first := &counter{until: 40, names: map[string]int{}}
	if _, _, err := searchWith(j, first); !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
	// The run was killed without a close and left an incomplete line at the end.
	torn, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprint(torn, `{"trial":"pus 0 256x`)
	torn.Close()

	j, err = OpenJournal(path, testKey, true)
	if err != nil {
		t.Fatal(err)
	}
	second := &counter{names: map[string]int{}}
	r, rec, err := searchWith(j, second)
	if err != nil {
		t.Fatal(err)
	}
	if rec.hits != 40 {
		t.Errorf("%d trials came from the journal, 40 were finished", rec.hits)
	}
	for name := range second.names {
		if first.names[name] > 0 {
			t.Errorf("timed again: %s", name)
		}
	}
	if fmt.Sprint(r.Rules) != fmt.Sprint(whole.Rules) {
		t.Errorf("the resumed search found another table:\n%v\n%v", r.Rules, whole.Rules)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(RemoveJournal(path), RemoveJournal(path)); err != nil {
		t.Error(err)
	}
}

func TestJournalSurvivesAKillAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	j, err := OpenJournal(path, testKey, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := searchWith(j, &counter{until: 5}); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for n := range len(data) + 1 {
		cut := filepath.Join(dir, "cut")
		if err := os.WriteFile(cut, data[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJournal(cut, testKey, true)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		have := 0
		for _, l := range j.finished {
			have += len(l)
		}
		if have < lines || have > lines+1 {
			t.Fatalf("cut after %d bytes: %d trials, before %d", n, have, lines)
		}
		lines = have
		// The lines must be complete: after one more line the journal is read again.
		if err := errors.Join(j.write(line{Trial: "x", Seconds: []float64{1}}), j.Close()); err != nil {
			t.Fatal(err)
		}
		if j, err = OpenJournal(cut, testKey, true); err != nil || len(j.finished["x"]) != 1 {
			t.Fatalf("cut after %d bytes: the line written then is lost: %v", n, err)
		}
		j.Close()
	}
	if lines != 5 {
		t.Errorf("%d of 5 trials in the whole journal", lines)
	}
}

func TestForeignJournalsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	j, err := OpenJournal(path, testKey, false)
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	for what, change := range map[string]func(*Key){
		"fingerprint": func(k *Key) { k.Fingerprint = "g" },
		"build":       func(k *Key) { k.Build = "c" },
		"model":       func(k *Key) { k.Model = "n" },
		"seed":        func(k *Key) { k.Seed = 2 },
		"flags":       func(k *Key) { k.Flags = "effort=full" },
	} {
		key := testKey
		change(&key)
		_, err := OpenJournal(path, key, true)
		if !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.WriteFile(path, []byte("some notes\nof mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, resume := range []bool{true, false} {
		if _, err := OpenJournal(path, testKey, resume); !errors.Is(err, ErrNoJournal) {
			t.Errorf("a text file passed for a journal: %v", err)
		}
	}
	if data, _ := os.ReadFile(path); string(data) != "some notes\nof mine\n" {
		t.Errorf("the text file was changed to %q", data)
	}
	if err := os.WriteFile(path, make([]byte, 3<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, testKey, true); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a line of 3 MiB: %v", err)
	}
}
