package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
)

// With fewSamples of each figure and no limit of time, tests measure the same on a busy machine.
// The first of few is a warm-up.
const (
	fewSamples = 3
	noBudget   = time.Hour
)

func TestFull(t *testing.T) {
	p := narrow(t)
	allowed := p.Allowed()
	print := p.Fingerprint()
	seen := map[string]bool{}
	err := Full(context.Background(), p, FullOptions{Budget: noBudget, samples: fewSamples, patience: noBudget,
		Progress: func(done, total float64, figure string) {
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
		t.Skip("needs two PUs; allow this process another one")
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := Full(ctx, p, FullOptions{Budget: noBudget, samples: fewSamples, patience: noBudget,
		Progress: func(_, _ float64, figure string) {
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
	m, err := hwloc.ReadSynthetic(text)
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
		return profiles.Matrix{Name: profiles.ComputeMatrix, Items: []int{0, 1}, Rows: []profiles.MatrixRow{{0, v},
			{v, 0}}}
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
	nodes := &profiles.Matrix{Items: []int{0, 1}, Rows: []profiles.MatrixRow{{4e10, 1e10}, {1e10, 2e10}},
		Noises: []profiles.MatrixRow{{0.01, 0}, {0, 0.02}}}
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

// TestManyWorkers runs the stages of a large machine with unpinned workers, as many as it has PUs:
// that nothing hangs, and that the time is kept by leaving out pairs, is all that can be seen.
func TestManyWorkers(t *testing.T) {
	m := described(t, "pack:2 numa:2 l3:1(size=4MiB) l2:1(size=64KiB) core:12")
	workers, err := pool.New(m.Online.Slice(), pool.Options{Spin: pool.NoSpin})
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	p := profiles.New(m, profiles.Identity{})
	f := newFull(workers, p)
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
	if m := p.Matrix(profiles.LatencyMatrix); m != nil && len(m.Items) == 48 && m.N > maxSamples {
		t.Errorf("latency of all %d PUs in a moment", len(m.Items))
	}
}

func TestLostRoundTrip(t *testing.T) {
	l := &line{patience: lostAfter}
	if l.bounce(0, 0, 1); l.count.Load() != 1 {
		t.Fatalf("count %d", l.count.Load())
	}
	if l.bounce(0, 1, 1) || !l.lost.Load() {
		t.Error("a partner that never answers was waited for")
	}
	if !math.IsNaN(num.Median(nil)) || num.Median([]float64{3, 1, 2}) != 2 || num.Median([]float64{1, 2}) != 1.5 {
		t.Error("median")
	}
}

// TestBends checks that additional points are measured only where a curve leaves the line.
func TestBends(t *testing.T) {
	n := []int{1, 2, 4, 8, 16, 32}
	if got := bends(n, []float64{1, 2, 4, 8, 16, 32}); got != nil {
		t.Errorf("of a line: %v", got)
	}
	if got := bends(n, []float64{1, 2, 4, 8, 9, 9}); !slices.Equal(got, []int{6, 12, 24}) {
		t.Errorf("of a knee at 8: %v", got)
	}
	if got := bends([]int{1, 2}, []float64{1, 2}); got != nil {
		t.Errorf("of two points: %v", got)
	}
}

// workersFor returns unpinned workers on a machine that is described as text. The measured values
// have no meaning, but the set of measured figures has.
func workersFor(t *testing.T, m *topotree.Machine) *full {
	t.Helper()
	workers, err := pool.New(m.Allowed.Slice(), pool.Options{Spin: pool.NoSpin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(workers.Close)
	f := newFull(workers, profiles.New(m, profiles.Identity{}))
	f.samples = fewSamples
	if f.memory, err = f.prepareMemory(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.memory.free)
	return f
}

// TestSetsOfOneSize checks which sets of PUs of equal size are measured separately: those of other
// classes, cores, nodes and caches.
func TestSetsOfOneSize(t *testing.T) {
	f := workersFor(t, described(t, "numa:2(memory=1GiB) l3:2(size=1MiB) core:2 pu:2"))
	names := func(sets []domain) []string {
		var out []string
		for _, s := range sets {
			out = append(out, s.name+" "+topotree.NewCPUSet(s.pus...).String())
		}
		return out
	}
	f.solo = map[int][]float64{}
	for pu := range f.profile.Machine.Allowed.All() {
		f.solo[pu] = []float64{100, 100, 100}
		if pu >= 8 {
			f.solo[pu] = []float64{50, 50, 50}
		}
	}
	want := []string{"class of PU 0 0", "core of PU 0 0-1", "class of PU 0 0,2,4,6", "class of PU 8 8",
		"core of PU 8 8-9",
		"class of PU 8 8,10,12,14", "machine 0,4,8,12", "machine 0-15"}
	if got := names(f.peakSets()); !slices.Equal(got, want) {
		t.Errorf("peaks of %q", got)
	}
	want = []string{"node 0 0,4", "node 0 0,2,4,6", "node 1 8,12", "node 1 8,10,12,14"}
	if got := names(f.spreadSets()); !slices.Equal(got, want) {
		t.Errorf("spread over caches: %q", got)
	}
	if got := f.countsOf(f.coresFirst(topotree.CPURange(0, 7))); !slices.Contains(got, 4) || got[len(got)-1] != 8 {
		t.Errorf("numbers of PUs of a node: %v", got)
	}
}

// TestFlowsAndReduces checks that the profile has the combinations of flows that share links, and
// all-reduces by ranks and bytes, in the form that Check requires.
func TestFlowsAndReduces(t *testing.T) {
	f := workersFor(t, described(t, "numa:2(memory=1GiB) l3:1(size=1MiB) core:2"))
	until := time.Now().Add(noBudget)
	if len(f.memory.regions) == 2 { // each on the node at hand, since the machine is one of text
		if err := f.measureFlows(t.Context(), until); err != nil {
			t.Fatal(err)
		}
	} else {
		f.memory.regions = []*region{f.memory.regions[0], {node: 1, cpus: topotree.CPURange(2, 3),
			buf: f.memory.regions[0].buf}}
		if err := f.measureFlows(t.Context(), until); err != nil {
			t.Fatal(err)
		}
		f.memory.regions = f.memory.regions[:1] // its buffer is freed once
	}
	var flows []string
	for _, s := range f.sets {
		text := ""
		for _, flow := range s.Flows {
			text += fmt.Sprintf(" %s@%d", flow.CPUs, flow.Node)
		}
		flows = append(flows, text)
	}
	if want := []string{" 0-1@-1", " 2-3@-1", " 2-3@0 0-1@1", " 0-3@-1"}; !slices.Equal(flows, want) {
		t.Errorf("flows %q, want %q", flows, want)
	}
	if err := f.measureReduces(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	f.profile.Sets = f.sets
	if err := f.profile.Check(); err != nil {
		t.Error(err)
	}
	sums := map[int]int{}
	for _, s := range f.sets {
		sums[s.Ranks]++
	}
	if sums[2] != 3 || sums[4] != 3 {
		t.Errorf("sums by ranks: %v", sums)
	}
}
