package tuner

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
	"sandwich/tuner/ranking"
	"sandwich/tuner/trials"
)

// TestRaceRanks races two ranks against one, and checks the reasons of those that are not taken.
func TestRaceRanks(t *testing.T) {
	o := tiny(t)
	cores := o.Profile.CorePUs()
	if len(cores) < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	ranks, err := heuristic.MakeRanks(o.Profile, cores, 2)
	if err != nil {
		t.Skipf("the PUs of this machine cannot be divided into two ranks: %v", err)
	}
	c := &candidates.Config{Prefill: topotree.NewCPUSet(cores...), Decode: topotree.NewCPUSet(cores...)}
	for _, r := range ranks {
		c.Ranks = append(c.Ranks, candidates.Rank{PUs: topotree.NewCPUSet(r.PUs...)})
	}
	raceRanks := func(budget time.Duration, resume bool) ([]*partition, *tuning) {
		o.Budget, o.Resume, o.Began = budget, resume, time.Now()
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		run := &tuning{ctx: t.Context(), o: o, ranking: &ranking.Ranking{Ranked: []*ranking.Ranked{{Config: c, Score: 1,
			Names: []string{"two ranks"}}}}}
		defer run.close()
		defer run.shut()
		if err := errors.Join(run.describe(), run.openJournal()); err != nil {
			t.Fatal(err)
		}
		home, err := run.newPartition(nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := run.raceRanks(home)
		if err != nil {
			t.Fatal(err)
		}
		return out, run
	}
	o.Journal = filepath.Join(t.TempDir(), "x.journal")
	out, run := raceRanks(time.Minute, false) // the budget ends long before
	arms := run.evidence.Finalists
	if len(arms) < 6 {
		t.Skip("this machine is too busy to compare ranks in 6 s")
	}
	if len(arms) != 6 || len(out)+len(run.evidence.Rejected) != 2 || run.rec.Hits() != 0 {
		t.Errorf("%d partitions, %+v", len(out), run.evidence)
	}
	_, again := raceRanks(time.Minute, true)
	if got := again.evidence.Finalists; len(got) != 6 || again.rec.Hits() == 0 ||
		got[4].Samples[0] != arms[4].Samples[0] {
		t.Errorf("resumed with %d samples of the journal: %+v, before %+v", again.rec.Hits(), got, arms)
	}
}

// TestSeveralRanks checks that partitions near the best are raced once each, and of distant degrees
// only those adjacent to the best's.
func TestSeveralRanks(t *testing.T) {
	ranked := func(tp int, first int, score float64) *ranking.Ranked {
		c := &candidates.Config{}
		for i := range tp {
			c.Ranks = append(c.Ranks, candidates.Rank{PUs: topotree.NewCPUSet(first + i)})
		}
		return &ranking.Ranked{Config: c, Score: score}
	}
	r := &ranking.Ranking{Ranked: []*ranking.Ranked{ranked(1, 0, 1), ranked(2, 0, 0.99), ranked(2, 0, 0.98), ranked(2,
		5, 0.97),
		ranked(8, 0, 0.9), ranked(4, 0, 0.5)}}
	got := r.SeveralRanks(3)
	if len(got) != 1 || got[0] != r.Ranked[1] {
		t.Errorf("%d of the first three", len(got))
	}
	if got = r.SeveralRanks(10); len(got) != 3 || got[2] != r.Ranked[4] {
		t.Errorf("%d of all: what is far behind is not raced", len(got))
	}
	r.Ranked[0], r.Ranked[4] = r.Ranked[4], r.Ranked[0]
	r.Ranked[0].Score, r.Ranked[4].Score = 1, 0.9
	if got = r.SeveralRanks(1); len(got) != 1 || got[0].Config.TP() != 8 {
		t.Errorf("the best first: %+v", got)
	}
}

// TestTuneTwoPartitions checks that tables are searched in each partition, that whole
// configurations of both race, and that at most one partition other than the default's is in
// memory.
func TestTuneTwoPartitions(t *testing.T) {
	o := tiny(t)
	cores := o.Profile.CorePUs()
	if len(cores) < 2 {
		t.Skip("needs two PUs; allow this process another one")
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	o.Budget, o.Began = 6*time.Second, time.Now()
	ranks, err := heuristic.MakeRanks(o.Profile, cores, 2)
	if err != nil {
		t.Skipf("the PUs of this machine cannot be divided into two ranks: %v", err)
	}
	s, err := plans.NewService(ranks, cores, cores)
	if err != nil {
		t.Fatal(err)
	}
	run := &tuning{ctx: t.Context(), o: o, ranking: &ranking.Ranking{}, rec: trials.NewRecorder(nil)}
	defer run.shut()
	if err := run.describe(); err != nil {
		t.Fatal(err)
	}
	var list []*partition
	for _, cut := range []*plans.ServiceConfig{nil, &s, &s} {
		p, err := run.newPartition(cut)
		if err != nil {
			t.Fatal(err)
		}
		n := len(list)
		p.ends(0.2*float64(n), 0.2*float64(n+1))
		if err := run.open(p); err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			if err := p.search(); err != nil {
				t.Fatal(err)
			}
		}
		if list = append(list, p); n == 2 && (list[1].opened() || !list[0].opened()) {
			t.Error("a third partition is in memory")
		}
	}
	if err := run.decide(list[:2]); err != nil {
		t.Fatal(err)
	}
	b, err := run.bundle()
	if err != nil {
		t.Fatal(err)
	}
	names, arms := b.Evidence.Race("decode")
	if len(names) == 0 {
		t.Skip("this machine is too busy to compare finalists in 6 s")
	}
	two := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "2 ranks on PUs ") })
	if slices.ContainsFunc(b.Evidence.Rejected, func(r evidence.Rejected) bool {
		return strings.Contains(r.Reason, "before it ran")
	}) {
		t.Skip("this machine is too busy to race two partitions in 6 s")
	}
	if two < 0 || evidence.GainOver(arms[evidence.ArmDefault], arms[names[two]]).Rounds == 0 {
		t.Errorf("%q %+v", names, b.Evidence.Rejected)
	}
	if won := run.won == list[1]; won != (b.Plan.TP() == 2) || b.Plan.Validate() != nil {
		t.Errorf("%d ranks, won %v", b.Plan.TP(), won)
	}
}
