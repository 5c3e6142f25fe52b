package calibrate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

func TestFull(t *testing.T) {
	p := narrow(t)
	allowed := p.Allowed()
	print := p.Fingerprint()
	seen := map[string]bool{}
	err := Full(context.Background(), p, FullOptions{Budget: 400 * time.Millisecond, Progress: func(done, total float64, figure string) {
		if done < 0 || total <= 0 {
			t.Errorf("progress %v of %v", done, total)
		}
		seen[figure] = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if p.Probe == nil || p.Probe.Mode != "full" || p.Probe.Partial {
		t.Errorf("probe %+v", p.Probe)
	}
	if p.Fingerprint() != print {
		t.Error("measuring made another host of it")
	}
	for _, s := range p.Sets {
		if !s.CPUs.In(allowed) || !s.Measured() {
			t.Errorf("%+v", s)
		}
	}
	if allowed.Count() < 2 {
		return
	}
	for _, name := range []string{profiles.LatencyMatrix, profiles.ComputeMatrix} {
		m := p.Matrix(name)
		if m == nil {
			t.Errorf("no matrix %s; notes %q", name, p.Notes)
			continue
		}
		if !topotree.NewCPUSet(m.Items...).In(allowed) {
			t.Errorf("%s was measured on %v, allowed are %s", name, m.Items, allowed)
		}
		if m.Rows[0][1] <= 0 || m.Rows[0][1] != m.Rows[1][0] || m.Rows[0][0] != 0 || m.N < 1 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if !seen["cache line round trips"] || !seen["barriers"] {
		t.Errorf("progress named only %v", seen)
	}
}

func TestFullStops(t *testing.T) {
	p := narrow(t)
	if p.Allowed().Count() < 2 {
		t.Skip("it takes two PUs")
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := Full(ctx, p, FullOptions{Budget: 4 * time.Second, Progress: func(_, _ float64, figure string) {
		if figure == "contention for multiply-adds" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if p.Probe == nil || !p.Probe.Partial {
		t.Errorf("probe %+v is not marked partial", p.Probe)
	}
	if p.Matrix(profiles.LatencyMatrix) == nil {
		t.Error("the finished matrix was lost")
	}
	if p.Matrix(profiles.MemoryMatrix) != nil || len(p.Sets) > 0 {
		t.Error("it went on after the end")
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// described is a machine of text, which can be looked at but not measured.
func described(t *testing.T, text string) *topotree.Machine {
	t.Helper()
	m, err := topotree.ReadSynthetic(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// matrixOf fills a matrix over all PUs of a machine with 10 % noise.
func matrixOf(m *topotree.Machine, name string, value func(a, b int) float64) profiles.Matrix {
	rng := rand.New(rand.NewPCG(7, 7))
	out := profiles.Matrix{Name: name, Items: m.Allowed.Slice(), Unit: "x"}
	for _, a := range out.Items {
		row := make(profiles.MatrixRow, len(out.Items))
		for j, b := range out.Items {
			if a > b {
				row[j] = value(a, b) * (1 + 0.1*rng.NormFloat64())
				out.Rows[j][len(out.Rows)] = row[j]
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func TestLatentFindsHiddenClusters(t *testing.T) {
	m := described(t, "pack:2 l3:1 core:16")
	found, err := latent(m.Tree, matrixOf(m, profiles.LatencyMatrix, func(a, b int) float64 {
		switch {
		case a/4 == b/4:
			return 50
		case a/16 == b/16:
			return 100
		}
		return 300
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Group == "" || found[0].Known != "" || found[1].Known == "" || found[1].Group != "" {
		t.Fatalf("found %+v", found)
	}
	p := profiles.New(m, profiles.Identity{})
	p.Latent = found
	groups := p.Groups()
	if len(groups) != 1 {
		t.Fatalf("groups to try first: %v", groups)
	}
	grouped, err := m.Tree.Apply(groups[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range grouped.Level(groups[0].D) {
		if !n.CPUs.Equal(found[0].Sets[i]) {
			t.Errorf("group %d holds %s, found was %s", i, n.CPUs, found[0].Sets[i])
		}
	}
}

func TestSharedCoresOnSmallMachines(t *testing.T) {
	m := described(t, "pack:1 core:2")
	pair := func(v float64) profiles.Matrix {
		return profiles.Matrix{Name: profiles.ComputeMatrix, Items: []int{0, 1}, Rows: []profiles.MatrixRow{{0, v}, {v, 0}}}
	}
	found, err := latent(m.Tree, pair(0.52))
	if err != nil || len(found) != 1 || len(found[0].Sets) != 1 || found[0].Sets[0].String() != "0-1" {
		t.Errorf("siblings: %+v, %v", found, err)
	}
	if found, err = latent(m.Tree, pair(0.98)); err != nil || len(found) != 0 {
		t.Errorf("two cores: %+v, %v", found, err)
	}
}

func TestSpeedClasses(t *testing.T) {
	m := described(t, "numa:2 core:2")
	samples := func(rate float64) []float64 { return []float64{rate, rate * 1.01, rate * 0.99} }
	solo := map[int][]float64{0: samples(2e11), 1: samples(2e11), 2: samples(2e11), 3: samples(1e11)}
	got := speedClasses(solo, nil, m)
	if len(got) != 2 || got[0].CPUs.String() != "0-2" || got[1].CPUs.String() != "3" {
		t.Errorf("a slow PU: %+v", got)
	}
	solo[3] = []float64{0.5e11, 1e11, 2e11}
	if got = speedClasses(solo, nil, m); len(got) != 1 {
		t.Errorf("a disturbed PU made a class: %+v", got)
	}
	solo[3] = samples(1.9e11)
	nodes := &profiles.Matrix{Items: []int{0, 1}, Rows: []profiles.MatrixRow{{4e10, 1e10}, {1e10, 2e10}}, Noises: []profiles.MatrixRow{{0.01, 0}, {0, 0.02}}}
	if got = speedClasses(solo, nodes, m); len(got) != 2 || got[0].CPUs.String() != "0-1" {
		t.Errorf("a slow node: %+v", got)
	}
	delete(solo, 3)
	if got = speedClasses(solo, nil, m); len(got) != 1 {
		t.Errorf("a PU without a sample: %+v", got)
	}
	colored, err := m.WithMeasured(speedClasses(solo, nodes, m))
	if err != nil {
		t.Fatal(err)
	}
	if !knownColors(colored.Tree, colored.Measured) || knownColors(m.Tree, colored.Measured) {
		t.Error("classes that colors show already are not told from others")
	}
}

func TestSampled(t *testing.T) {
	for _, c := range []struct {
		machine string
		n       int
		want    string
	}{
		{"pack:2 core:4", 8, "0-7"},
		{"pack:4 numa:2 l3:1 core:24", 192, "0-191"},
		{"pack:4 numa:2 l3:1 core:24", 60, "0-23,96-119"},
		{"pack:4 numa:2 l3:1 core:24", 10, "0-9"},
		{"pack:1 core:64 pu:2", 32, "0-31"},
	} {
		if got := topotree.NewCPUSet(sampled(described(t, c.machine), c.n)...).String(); got != c.want {
			t.Errorf("%d of %s: %s, want %s", c.n, c.machine, got, c.want)
		}
	}
}

func TestItemsOfPairs(t *testing.T) {
	for pairs, want := range map[int]int{-5: 2, 0: 2, 1: 2, 3: 3, 5: 3, 6: 4, 18336: 192, 18335: 191} {
		if got := itemsOfPairs(pairs); got != want {
			t.Errorf("itemsOfPairs(%d) = %d, want %d", pairs, got, want)
		}
	}
}

func TestFullBudget(t *testing.T) {
	for pus, want := range map[int]time.Duration{2: 15 * time.Second, 192: 110 * time.Second, 4096: 110 * time.Second} {
		if got := FullBudget(pus); got != want {
			t.Errorf("FullBudget(%d) = %s", pus, got)
		}
	}
}

// TestManyWorkers runs the stages of a large machine with unpinned workers, as many as it has PUs: that nothing hangs, and that the time is kept by leaving out
// pairs, is all that can be seen.
func TestManyWorkers(t *testing.T) {
	m := described(t, "pack:2 numa:2 l3:1(size=4MiB) l2:1(size=64KiB) core:12")
	workers, err := pool.New(m.Online.Slice(), pool.Options{Spin: pool.NoSpin})
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	p := profiles.New(m, profiles.Identity{})
	f := &full{bench: newBench(workers, p), tell: func(float64, string) {}, solo: map[int][]float64{}}
	if f.memory, err = f.prepareMemory(); err != nil {
		t.Fatal(err)
	}
	defer f.memory.free()
	if err := f.stages(context.Background(), 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	p.Matrices, p.Sets = f.matrices, f.sets
	if err := f.interpret(); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if m := p.Matrix(profiles.LatencyMatrix); m != nil && len(m.Items) == 48 && m.N > mostSamples {
		t.Errorf("latency of all %d PUs in a moment", len(m.Items))
	}
}

func TestLostRoundTrip(t *testing.T) {
	l := new(line)
	if l.bounce(0, 0, 1); l.turn.Load() != 1 {
		t.Fatalf("turn %d", l.turn.Load())
	}
	if l.bounce(0, 1, 1) || !l.lost.Load() {
		t.Error("a partner that never answers was waited for")
	}
	if !math.IsNaN(median(nil)) || median([]float64{3, 1, 2}) != 2 || median([]float64{1, 2}) != 1.5 {
		t.Error("median")
	}
}
