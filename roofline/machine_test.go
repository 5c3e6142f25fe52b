package roofline

import (
	"math"
	"slices"
	"strings"
	"testing"

	"sandwich/profiles"
	"sandwich/runtime/refdata"
	"sandwich/topotree"
)

func point(kind, isa, typ, level string, pus int, v float64) profiles.Ceiling {
	return profiles.Ceiling{Kind: kind, ISA: isa, Type: typ, Level: level, PUs: pus,
		Figure: profiles.Figure{Median: v, Assumed: true}}
}

func cpus(pus ...int) topotree.CPUSet { return topotree.NewCPUSet(pus...) }

// eight is a machine without a description, with peaks at 1 and 8 PUs and a bandwidth that
// saturates at 4.
func eight() *profiles.Profile {
	return &profiles.Profile{Ceilings: []profiles.Ceiling{
		point(profiles.Compute, "avx2", "f32", "", 8, 800), point(profiles.Compute, "avx2", "f32", "", 1, 100),
		point(profiles.Compute, "avx512", "f32", "", 1, 190),
		point(profiles.Bandwidth, "", "", "memory", 1, 10), point(profiles.Bandwidth, "", "", "memory", 2, 20),
		point(profiles.Bandwidth, "", "", "memory", 4, 38), point(profiles.Bandwidth, "", "", "memory", 8, 40),
		{Kind: profiles.Compute, Device: "sme", Type: "f32", PUs: 2, Figure: profiles.Figure{Median: 2000,
			Assumed: true}},
	}}
}

// TestByCount checks that a profile that has figures by number of PUs only answers by the number,
// and that these answers are marked as assumed.
func TestByCount(t *testing.T) {
	m := NewMachine(eight())
	f32 := Path{"avx2", "f32"}
	for _, c := range []struct {
		got  Answer
		want float64
	}{
		{m.Peak(topotree.CPURange(0, 0), f32), 100}, {m.Peak(topotree.CPURange(3, 5), f32), 300},
		{m.Peak(topotree.CPURange(0, 7), f32), 800}, {m.Peak(topotree.CPURange(0, 15), f32), 800},
		{m.Peak(topotree.CPUSet{}, f32), 0}, {m.Peak(topotree.CPURange(0, 3), Path{"neon", "f32"}), 0},
		{m.Bandwidth(topotree.CPURange(2, 4), Local), 29}, {m.Bandwidth(topotree.CPURange(0, 5), Local), 39},
		{m.Read(cpus(0), "l2"), 0}, {m.Bandwidth(cpus(0), 3), 0},
	} {
		if math.Abs(c.got.Value-c.want) > 1e-9 || c.got.Known() != (c.want > 0) || c.got.Known() && !c.got.Assumed {
			t.Errorf("%+v, want %v, assumed", c.got, c.want)
		}
	}
	r, err := m.Ceiling(topotree.CPURange(0, 3), f32)
	if err != nil || r.Bandwidth != 38 || len(r.Targets) != 2 ||
		r.Targets[0].Name != "avx2/f32" || r.Targets[0].Peak != 400 || r.Targets[1].Peak != 2000 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = m.Ceiling(topotree.CPURange(0, 3), Path{"avx2", "int8"}) // no dot product of bytes
	if err != nil || r.Targets[0].Name != "avx2/int8" || r.Targets[0].Peak != 800 || r.Targets[0].Parts[0].Peak != 800 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := m.Ceiling(cpus(0), Path{"avx2", "bf16"}); err == nil {
		t.Error("a ceiling of bf16 is known")
	}
	if _, err := m.Ceiling(cpus(0), Path{"neon", "f32"}); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Errorf("an unknown ceiling: %v", err)
	}
}

// TestMixedCeilingIsNoUnit checks a measured ceiling of several units: SME and cores of an M4 Pro
// reach 4.27 TFLOP/s together, less than the sum of both alone.
func TestMixedCeilingIsNoUnit(t *testing.T) {
	p, err := profiles.Builtin("m4pro")
	if err != nil {
		t.Fatal(err)
	}
	pus := p.FirstPUs(8)
	r, err := NewMachine(p).Ceiling(pus, Path{"neon", "f16"})
	if err != nil || len(r.Targets) != 2 || r.Mixed != 4.27e12 {
		t.Fatalf("%+v, %v", r, err)
	}
	prefill := MatMul(512, 14336, 4096, 16)
	out := Output{Rows: 512, Columns: 14336, TileRows: 16, TileColumns: 48}
	if got := prefill.FLOP / r.Place(prefill, out).Seconds; got > 4.27e12 || got < 0.99*4.27e12 {
		t.Errorf("prefill at %.3g FLOP/s, want 4.27e12", got)
	}
	batched := MatMul(10, 4096, 4096, 16) // on the SME units alone
	if got, want := r.Place(batched, out).Seconds, r.Seconds(r.Targets[1], batched); got != want {
		t.Errorf("batched decode in %g s, want %g", got, want)
	}
	gpu := profiles.Ceiling{Kind: profiles.Compute, Device: "gpu", Type: "f16", PUs: 1,
		Figure: profiles.Figure{Median: 7e12, Assumed: true}}
	p.Ceilings = append(p.Ceilings, gpu)
	if r, err := NewMachine(p).Ceiling(pus, Path{"neon", "f16"}); err != nil || len(r.Targets) != 3 || r.Mixed != 0 {
		t.Errorf("two of three units bound all: %+v, %v", r, err)
	}
	cores, err := NewMachine(p).CoreCeilings(pus, "neon", []string{"f16", "f32"})
	if err != nil || len(cores["f16"].Targets) != 1 || cores["f16"].Mixed != 0 || cores["f32"].Targets[0].Peak != 8*
		115e9 {
		t.Errorf("the cores alone: %+v, %v", cores, err)
	}
}

// byCount is what ceilings were before they went by set: the best figure of a number of PUs, linear
// between, flat beyond.
func byCount(p *profiles.Profile, n int, match func(*profiles.Ceiling) bool) float64 {
	best := map[int]float64{}
	for i := range p.Ceilings {
		if c := &p.Ceilings[i]; c.Device == "" && match(c) {
			best[c.PUs] = math.Max(best[c.PUs], c.Median)
		}
	}
	below, above := 0, math.MaxInt
	for pus := range best {
		if pus <= n {
			below = max(below, pus)
		}
		if pus >= n {
			above = min(above, pus)
		}
	}
	switch {
	case len(best) == 0:
		return 0
	case below == n || above == math.MaxInt:
		return best[below]
	case below == 0:
		return best[above] * float64(n) / float64(above)
	}
	return best[below] + (best[above]-best[below])*float64(n-below)/float64(above-below)
}

// TestSameCeilingsAsBefore checks that the PUs that a profile of version 1 counted have the
// ceilings of their number.
func TestSameCeilingsAsBefore(t *testing.T) {
	hosts := map[string]*profiles.Profile{}
	for _, name := range profiles.BuiltinNames() {
		p, err := profiles.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts[name] = p
	}
	for _, file := range refdata.Glob(t, "machines/*/host.yaml") {
		p, err := profiles.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		hosts[file] = p
	}
	for name, p := range hosts {
		m, ranked := NewMachine(p), p.RankedPUs()
		for n := 1; n <= len(ranked); n += 1 + n/9 {
			set := cpus(ranked[:n]...)
			for _, c := range p.Ceilings {
				if c.Device != "" {
					continue
				}
				var got Answer
				if c.Kind == profiles.Compute {
					got = m.Peak(set, Path{c.ISA, c.Type})
				} else {
					got = m.Read(set, c.Level)
				}
				want := byCount(p, n, func(o *profiles.Ceiling) bool {
					return o.Kind == c.Kind &&
						o.Name() == c.Name()
				})
				if math.Abs(got.Value/want-1) > 1e-12 || got.Assumed && p.Probe != nil {
					t.Errorf("%s: %s of %d PUs is %+v and was %g", name, c.Name(), n, got, want)
				}
			}
		}
	}
}

// TestSpreadDecides checks that of two recorded sets of one size, the one that is spread over the
// machine in the same way answers for another set.
func TestSpreadDecides(t *testing.T) {
	h := &truth{nodes: 1, clusters: 4, cores: 4, smt: 1, speed: slices.Repeat([]float64{100}, 16),
		link: []float64{96}, names: upTo(0, 16)}
	p := h.profile(t, exact)
	fig := func(v float64) profiles.Figure { return profiles.Figure{Median: v, N: 9} }
	p.Ceilings = nil
	p.Sets = []profiles.SetFigure{
		{Name: profiles.Saturation, Domain: "node 0", CPUs: topotree.CPURange(0, 3), Figure: fig(10)},
		{Name: profiles.Saturation, Domain: "node 0", CPUs: cpus(0, 4, 8, 12), Figure: fig(30)},
		{Name: profiles.Saturation, Domain: "node 0", CPUs: topotree.CPURange(0, 15), Figure: fig(40)},
	}
	m := NewMachine(p)
	for _, c := range []struct {
		set  topotree.CPUSet
		want float64
	}{{topotree.CPURange(4, 7), 10}, {cpus(1, 5, 9, 13), 30}, {topotree.CPURange(0, 15), 40},
		{cpus(1, 5, 9, 13, 14, 10, 6, 2, 3, 7), 35}} {
		if got := m.Bandwidth(c.set, Local); got.Value != c.want || got.Assumed {
			t.Errorf("%s: %+v, want %g", c.set, got, c.want)
		}
	}
}

// TestFlows checks that a shared link limits every combination that contains it.
func TestFlows(t *testing.T) {
	h := &truth{nodes: 3, clusters: 1, cores: 2, smt: 1, speed: slices.Repeat([]float64{100}, 6),
		link: []float64{12, 12, 12}, names: upTo(0, 6)}
	p := h.profile(t, exact)
	p.Matrices = []profiles.Matrix{{Name: profiles.NodeMatrix, Items: []int{0, 1, 2}, N: 9,
		Rows: []profiles.MatrixRow{{12, 6, 4}, {6, 12, 4}, {4, 4, 12}}}}
	m := NewMachine(p)
	node := func(i int) topotree.CPUSet { return cpus(2*i, 2*i+1) }
	if a := m.Bandwidth(node(0), 2); a.Value != 4 || a.Assumed {
		t.Errorf("from afar: %+v", a)
	}
	if a := m.Bandwidth(node(0), Interleaved); math.Abs(a.Value-3/(1./12+1./6+1./4)) > 1e-9 || !a.Assumed {
		t.Errorf("interleaved by the rule: %+v", a)
	}
	if a := m.Flows(profiles.Flow{CPUs: node(0), Node: 1}, profiles.Flow{CPUs: node(1), Node: 1}); a.Value != 12 {
		t.Errorf("two flows that end at one node: %+v", a)
	}
	both := []profiles.Flow{{CPUs: node(0), Node: 2}, {CPUs: node(1), Node: 2}}
	p.Sets = append(p.Sets, profiles.SetFigure{Name: profiles.Flows, CPUs: topotree.CPURange(0, 3), Flows: both,
		Figure: profiles.Figure{Median: 5, N: 9}},
		profiles.SetFigure{Name: profiles.Flows, CPUs: node(0), Flows: []profiles.Flow{{CPUs: node(0),
			Node: Interleaved}},
			Figure: profiles.Figure{Median: 7, N: 9}})
	m = NewMachine(p)
	if a := m.Flows(both...); a.Value != 5 || a.Assumed {
		t.Errorf("the recorded flows: %+v", a)
	}
	if a := m.Flows(append(both, profiles.Flow{CPUs: node(2), Node: 0})...); a.Value != 8+4-3 {
		t.Errorf("with one more: %+v", a)
	}
	if a := m.Bandwidth(node(0), Interleaved); a.Value != 7 || a.Assumed {
		t.Errorf("interleaved as recorded: %+v", a)
	}
}

// TestWaits checks that barriers and all-reduces take longer with more PUs, bytes and ranks.
func TestWaits(t *testing.T) {
	fig := func(v float64) profiles.Figure { return profiles.Figure{Median: v, N: 9} }
	p := eight()
	if a := NewMachine(p).Barrier(cpus(0, 1)); a.Value != assumedBarrier || !a.Assumed {
		t.Errorf("no barrier was measured: %+v", a)
	}
	if a := NewMachine(p).AllReduce(1000, 2); !a.Assumed || math.Abs(a.Value-2*assumedBarrier-150) > 1e-9 {
		t.Errorf("no all-reduce was measured: %+v", a)
	}
	p.Sets = []profiles.SetFigure{
		{Name: profiles.Barrier, CPUs: topotree.CPURange(0, 1), Figure: fig(1)},
		{Name: profiles.Barrier, CPUs: topotree.CPURange(0, 3), Figure: fig(2)},
		{Name: profiles.Barrier, CPUs: cpus(0, 4), Figure: fig(1.5)},
		{Name: profiles.AllReduce, Ranks: 2, Bytes: 100, CPUs: cpus(0, 1), Figure: fig(10)},
		{Name: profiles.AllReduce, Ranks: 2, Bytes: 300, CPUs: cpus(0, 1), Figure: fig(30)},
		{Name: profiles.AllReduce, Ranks: 4, Bytes: 100, CPUs: cpus(0, 1), Figure: fig(20)},
		{Name: profiles.AllReduce, Ranks: 4, Bytes: 300, CPUs: cpus(0, 1), Figure: fig(60)},
	}
	m := NewMachine(p)
	for _, c := range []struct {
		set  topotree.CPUSet
		want float64
		told bool
	}{{cpus(0), 0, false}, {cpus(0, 1), 1, false}, {cpus(0, 4), 1.5, false}, {topotree.CPURange(0, 2), 1.75, false},
		{topotree.CPURange(0, 7), 3, true}} {
		if got := m.Barrier(c.set); math.Abs(got.Value-c.want) > 1e-9 || got.Assumed != c.told {
			t.Errorf("barrier of %s: %+v, want %g", c.set, got, c.want)
		}
	}
	for _, c := range []struct {
		bytes int64
		ranks int
		want  float64
		told  bool
	}{{100, 2, 10, false}, {200, 2, 20, false}, {50, 2, 10, false}, {500, 2, 50, false},
		{200, 3, 30, false}, {300, 8, 120, true}, {300, 1, 0, false}} {
		if got := m.AllReduce(c.bytes, c.ranks); math.Abs(got.Value-c.want) > 1e-9 || got.Assumed != c.told {
			t.Errorf("all-reduce of %d bytes on %d ranks: %+v, want %g", c.bytes, c.ranks, got, c.want)
		}
	}
}
