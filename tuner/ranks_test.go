package tuner

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/tuner/candidates"
	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
	"sandwich/tuner/shortlist"
)

// begin starts the stages of a run with the given ranking, and closes them when the test ends.
func begin(t *testing.T, o Options, ranked *ranking.Ranking) *tuning {
	t.Helper()
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	run, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.close)
	t.Cleanup(run.loader.Close)
	run.ranked = ranked
	run.run.Began = run.run.Now() // the ranking is not part of the test
	return run
}

// TestRaceRanks races two ranks against one, and checks the reasons of those that are not taken.
func TestRaceRanks(t *testing.T) {
	o := unhurried(tiny(t))
	o.Search.Strategy = "cost-model" // takes few trials
	cores := o.Subject.Profile.CorePUs()
	if cores.Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	ranks, err := heuristic.MakeRanks(o.Subject.Profile, cores, 2)
	if err != nil {
		t.Skipf("the PUs of this machine cannot be divided into two ranks: %v", err)
	}
	c := &candidates.Config{Prefill: cores, Decode: cores}
	for _, r := range ranks {
		c.Ranks = append(c.Ranks, candidates.Rank{PUs: r.PUs})
	}
	raceRanks := func(resume bool) ([]*partition.Partition, []evidence.Arm, *run.Run) {
		o.Run.Resume = resume
		ranked := &ranking.Ranking{Ranked: []*ranking.Ranked{{Config: c, Score: 1, Names: []string{"two ranks"}}}}
		b := begin(t, o, ranked)
		defer b.loader.Close()
		out, samples, err := shortlist.Partitions(t.Context(), shortlist.Input{Run: b.run, Loader: b.loader,
			Ranking: ranked, TopK: 10, Effort: b.effort})
		if err != nil {
			t.Fatal(err)
		}
		return out, samples, b.run
	}
	o.Run.Journal = filepath.Join(t.TempDir(), "x.journal")
	out, samples, first := raceRanks(false)
	if len(samples) != 6 || len(out)+len(first.Rejected) != 2 || first.Recorder.Hits() != 0 {
		t.Errorf("%d partitions, %+v, %+v", len(out), samples, first.Rejected)
	}
	first.Close()
	_, again, second := raceRanks(true)
	if hits := second.Recorder.Hits(); len(again) != 6 || hits == 0 || again[4].Samples[0] != samples[4].Samples[0] {
		t.Errorf("resumed with %d samples of the journal: %+v, before %+v", hits, again, samples)
	}
}

// TestTuneTwoPartitions checks that tables are searched in each partition, that whole
// configurations of both race, and that at most one partition other than the default's is in
// memory.
func TestTuneTwoPartitions(t *testing.T) {
	o := unhurried(tiny(t))
	o.Search.Strategy = "cost-model" // takes few trials
	cores := o.Subject.Profile.CorePUs()
	if cores.Count() < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	ranks, err := heuristic.MakeRanks(o.Subject.Profile, cores, 2)
	if err != nil {
		t.Skipf("the PUs of this machine cannot be divided into two ranks: %v", err)
	}
	s, err := plans.NewService(ranks, cores, cores)
	if err != nil {
		t.Fatal(err)
	}
	b := begin(t, o, &ranking.Ranking{})
	two, three := partitionOf(t, b, &s), partitionOf(t, b, &s)
	home := b.loader.Home()
	in := shortlist.Input{Run: b.run, Loader: b.loader, Ranking: b.ranked, TopK: 10, Effort: b.effort}
	var out outcome
	entries := make([]finals.Entry, 2)
	for i, p := range []*partition.Partition{home, two} {
		if err := b.loader.Open(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		window := run.NewWindow(0.2*float64(i), 0.2*float64(i+1))
		if entries[i], err = b.entry(t.Context(), in, p, window, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.loader.Open(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	if two.Opened() || !home.Opened() {
		t.Error("a third partition is in memory")
	}
	out.result, err = finals.Race(t.Context(), finals.Input{Run: b.run, Loader: b.loader, Ranking: b.ranked,
		Entries: entries, TopK: 10})
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.bundle(out)
	if err != nil {
		t.Fatal(err)
	}
	names, list := made.Evidence.Race("decode")
	at := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "2 ranks on PUs ") })
	if at < 0 || evidence.GainOver(list[evidence.ArmDefault], list[names[at]]).Rounds == 0 {
		t.Errorf("%q %+v", names, made.Evidence.Rejected)
	}
	if won := out.result.Partition == two; won != (made.Plan.TP() == 2) || made.Plan.Validate() != nil {
		t.Errorf("%d ranks, won %v", made.Plan.TP(), won)
	}
}

func partitionOf(t *testing.T, b *tuning, cut *plans.ServiceConfig) *partition.Partition {
	t.Helper()
	p, err := b.loader.Partition(cut)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
