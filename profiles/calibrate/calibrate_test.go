package calibrate

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree"
)

// narrow returns this machine with at most two of its PUs allowed and caches of at most 16 MiB, so
// that tests do the same on a large machine.
func narrow(t *testing.T) *profiles.Profile {
	t.Helper()
	return withCaches(t, func(_ topotree.Kind, bytes int64) int64 { return min(bytes, 16<<20) })
}

// withCaches returns this machine with at most two of its PUs allowed and other sizes of caches.
func withCaches(t *testing.T, size func(kind topotree.Kind, bytes int64) int64) *profiles.Profile {
	t.Helper()
	p, err := profiles.Live()
	if err != nil {
		t.Fatal(err)
	}
	d := p.Machine.Describe()
	d.Allowed = p.FirstPUs(2)
	d.Levels = slices.DeleteFunc(d.Levels, func(l topotree.LevelData) bool { return l.Kind == topotree.KindL4 })
	if !slices.ContainsFunc(d.Levels, func(l topotree.LevelData) bool { return l.Kind == topotree.KindL3 }) {
		d.Levels = append(d.Levels, topotree.LevelData{Kind: topotree.KindL3, Bytes: 8 << 20,
			Sets: []topotree.CPUSet{d.Online}})
	}
	for i, l := range d.Levels {
		if l.Bytes > 0 {
			d.Levels[i].Bytes = size(l.Kind, l.Bytes)
		}
	}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, p.Host)
}

func TestMeasure(t *testing.T) {
	p := narrow(t)
	quoted := profiles.Ceiling{Kind: profiles.Compute, Device: "npu", Type: "int8", PUs: 1,
		Figure: profiles.Figure{Median: 1e12, Unit: "OP/s", Source: "a data sheet"}}
	old := profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: 1, Figure: profiles.NewFigure("B/s",
		[]float64{1})}
	p.Ceilings = []profiles.Ceiling{quoted, old}
	calls := 0
	err := Measure(context.Background(), p, Options{Budget: time.Millisecond, Samples: 3, Progress: func(done,
		total float64, figure string) {
		if calls++; done < 0 || done >= total || figure == "" {
			t.Errorf("progress %v of %v at %q", done, total, figure)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("no progress was told")
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	n := p.UsablePUs().Count()
	var names []string
	for _, c := range p.Ceilings[1:] {
		names = append(names, c.Name())
		if !c.Measured() || c.N != 3 || !(c.Median > 1) || c.Min > c.Median || c.Max < c.Median ||
			c.PUs < 1 || c.PUs > n {
			t.Errorf("%s: %+v", c.Name(), c)
		}
	}
	same := func(a profiles.Ceiling) func(profiles.Ceiling) bool {
		return func(b profiles.Ceiling) bool { return reflect.DeepEqual(a, b) }
	}
	if !same(quoted)(p.Ceilings[0]) || slices.ContainsFunc(p.Ceilings, same(old)) {
		t.Errorf("ceilings %+v: the quoted one must stay and the measured one go", p.Ceilings[:2])
	}
	want := microkernel.PeakSpecs(microkernel.Host())[0].String()
	for _, name := range []string{want, "l1", "memory"} {
		count := 0
		for _, got := range names {
			if got == name {
				count++
			}
		}
		if count != n {
			t.Errorf("%s was measured for %d numbers of PUs, want %d (all: %v)", name, count, n, names)
		}
	}
}

func TestMeasureStops(t *testing.T) {
	p := narrow(t)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err := Measure(ctx, p, Options{Samples: 1000, Budget: time.Hour, Progress: func(float64, float64, string) {
		if calls++; calls == 40 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	if calls > 41 {
		t.Errorf("%d samples after the end", calls-40)
	}
	for _, c := range p.Ceilings {
		if !c.Measured() {
			t.Errorf("%s was kept without a sample", c.Name())
		}
	}
}

func TestMeasureRefusesForeignPUs(t *testing.T) {
	all := topotree.CPURange(9000, 9001)
	m, err := topotree.Description{Source: "test", Arch: "x86_64", Online: all}.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if err := Measure(context.Background(), profiles.New(m, profiles.Identity{}), Options{}); err == nil {
		t.Error("measured on PUs that are not there")
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1, 2}, 8: {1, 2, 3, 4, 5, 6, 7, 8}, 24: {1, 2, 3, 4, 5, 6, 7,
		8, 16, 24}} {
		if got := counts(n); !slices.Equal(got, want) {
			t.Errorf("counts(%d) = %v, want %v", n, got, want)
		}
	}
}

func TestBusyNotes(t *testing.T) {
	quiet := profiles.Ceiling{Kind: profiles.Compute, ISA: "avx2", Type: "f32", PUs: 1,
		Figure: profiles.NewFigure("FLOP/s", []float64{100, 101, 99})}
	busy := profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: 2, Figure: profiles.NewFigure("B/s",
		[]float64{100, 10, 50, 90})}
	if got := busyNotes([]profiles.Ceiling{quiet}); got != nil {
		t.Errorf("a quiet machine: %q", got)
	}
	if got := busyNotes([]profiles.Ceiling{quiet, busy}); len(got) != 1 || !strings.Contains(got[0],
		"memory with 2 PUs") {
		t.Errorf("a busy machine: %q", got)
	}
}

// TestRates checks that Rates measures, on one PU, the requested types that the CPU has, attention
// by each dot product, and the L1 cache, and nothing else.
func TestRates(t *testing.T) {
	p := narrow(t)
	isa := microkernel.Host().Best()
	got, err := Rates(t.Context(), p, isa, "f32", "bf16", "f64")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, c := range got {
		types = append(types, c.Type+c.Level)
		if c.Level == "" && c.ISA != isa.String() && c.ISA != "go" || c.PUs != 1 || c.N < minSamples ||
			!(c.Median > 1) {
			t.Errorf("%+v", c)
		}
	}
	var want []string
	for _, s := range microkernel.PeakSpecs(microkernel.Host()) {
		if s.ISA == isa && !strings.HasPrefix(s.Type, "int8") {
			want = append(want, s.Type)
		}
	}
	a, err := microkernel.NewAttention(isa, microkernel.KVLayout{HeadDim: 64}, microkernel.AttentionForm{})
	if err != nil {
		t.Fatal(err)
	}
	dots := slices.DeleteFunc(microkernel.AttentionDots(), func(d microkernel.AttentionDot) bool {
		return !d.On(isa, microkernel.Host())
	})
	if a.Native() && len(dots) > 1 {
		for _, typeOf := range []func(microkernel.AttentionDot) string{profiles.AttentionStepType,
			profiles.AttentionType} {
			for _, d := range dots {
				want = append(want, typeOf(d))
			}
		}
	}
	ports := slices.IndexFunc(types, func(typ string) bool { return strings.HasPrefix(typ, "ports-") })
	if ports < 0 {
		ports = len(types)
	}
	want = append(want, profiles.L1Loads)
	if a.Native() {
		want = append(want, profiles.Weights, profiles.WeightsAhead, profiles.WeightsShallow, profiles.WeightsDeep)
	}
	if !slices.Equal(types[:ports], want) {
		t.Errorf("rates of %v, want %v", types, want)
	}
	if isa.Generates() && (!slices.Contains(types[ports:], "ports-multiply") || len(types)-ports < 20) {
		t.Errorf("rates of ports are %v", types[ports:])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Rates(ctx, p, isa, "f32"); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// Figures of one set of workers follow each other, and the first round of each is thrown away.
func TestSampleBySet(t *testing.T) {
	workers, err := pool.New(narrow(t).FirstPUs(2).Slice(), pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer workers.Close()
	b := newBench(workers, nil)
	var order []int
	counted := func(id int, workers []int) *figure {
		calls := 0.0
		return &figure{workers: workers, work: func(w int) float64 {
			if w == 0 {
				order = append(order, id)
				calls++
			}
			time.Sleep(time.Millisecond)
			return calls
		}}
	}
	all := firstWorkers(workers.Size())
	figures := []*figure{counted(0, []int{0}), counted(1, all), counted(2, []int{0}), counted(3, all)}
	err = b.sample(t.Context(), figures, Options{Samples: 4, Budget: time.Minute}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := []int{0, 2, 0, 2, 0, 2, 0, 2, 1, 3, 1, 3, 1, 3, 1, 3, 0, 2, 0, 2, 1, 3, 1, 3} // passes of 3 and 1
	if workers.Size() == 1 {
		want = []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}
	}
	if !slices.Equal(order, want) {
		t.Errorf("samples in the order %v, want %v", order, want)
	}
	for i, f := range figures {
		if len(f.samples) != 4 {
			t.Errorf("figure %d has %d samples, not 4", i, len(f.samples))
		}
	}
}
