package selection

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/refdata"
)

// tinyllama is the shape of a model whose weights are all of one type.
func tinyllama(t *testing.T, typ gguf.Type) plans.ModelShape {
	t.Helper()
	config, err := synth.Preset("tinyllama-1.1b")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(config, synth.Uniform(typ))
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

// pathsOf lists the compute paths of a plan's weights, each once.
func pathsOf(p *plans.Plan) []string {
	var out []string
	for _, w := range p.Weights {
		if path := w.Compute.String(); !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// zen5 returns a recorded machine whose bf16 dot products run at twice the rate of float32.
func zen5(t *testing.T) *profiles.Profile {
	t.Helper()
	p, err := profiles.Load(refdata.Path(t, "machines/zen5-2c/host.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for typ, rate := range map[string]float64{"attend-f32": 200e9, "attend-dpbf16": 210e9,
		"attend-f32-step": 100e9, "attend-dpbf16-step": 100e9} { // made up
		p.Ceilings = append(p.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
			Figure: profiles.Figure{Median: rate, N: 9, Unit: "FLOP/s"}})
	}
	return p
}

// measureZen5 replaces calibrate.Rates: it returns the recorded rates of one PU, and invented ones
// for types that were not measured on the recorded machine.
func measureZen5(t *testing.T) func(context.Context, *profiles.Profile, microkernel.ISA, ...string) (
	[]profiles.Ceiling, error) {
	t.Helper()
	out := slices.DeleteFunc(zen5(t).Ceilings, func(c profiles.Ceiling) bool { return c.PUs != 1 })
	for level, rate := range map[string]float64{profiles.L1Loads: 400e9, profiles.Weights: 20e9,
		profiles.WeightsAhead: 21e9, profiles.WeightsShallow: 15e9, profiles.WeightsDeep: 16e9} {
		out = append(out, profiles.Ceiling{Kind: profiles.Bandwidth, Level: level, PUs: 1,
			Figure: profiles.Figure{Median: rate, N: 9, Unit: "B/s"}})
	}
	for _, class := range []string{"multiply", "dot", "logic", "shift", "shuffle", "convert", "load", "load-word"} {
		out = append(out, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: "ports-" + class, PUs: 1,
			Figure: profiles.Figure{Median: 8e9, N: 5, Unit: "instructions/s"}})
	}
	return func(context.Context, *profiles.Profile, microkernel.ISA, ...string) ([]profiles.Ceiling, error) {
		return slices.Clone(out), nil
	}
}

// TestRecordedMachineTakesPairs checks that a recorded Zen 5 uses bf16 dot products because of its
// measured rates and not of its name.
func TestRecordedMachineTakesPairs(t *testing.T) {
	p := zen5(t)
	plan, err := heuristic.Default(p, tinyllama(t, gguf.BF16), heuristic.Options{})
	if err != nil || plan.Exact() || !slices.Equal(pathsOf(plan), []string{"bf16"}) {
		t.Errorf("paths %v: %v", pathsOf(plan), err)
	}
	for i, c := range p.Ceilings { // an Emerald Rapids makes every other cycle one dot product of 512 bits
		if c.Type == "bf16" {
			p.Ceilings[i].Median, p.Ceilings[i].Min, p.Ceilings[i].Max = c.Median/4, c.Min/4, c.Max/4
		}
	}
	plan, err = heuristic.Default(p, tinyllama(t, gguf.BF16), heuristic.Options{})
	if err != nil || !plan.Exact() || !slices.Equal(pathsOf(plan), []string{"f32"}) {
		t.Errorf("at half the rate: paths %v: %v", pathsOf(plan), err)
	}
}

// TestRatesAreKept checks that every later start makes the choice of the first one, since it reads
// the rates that the first one stored, and that a damaged file is measured again.
func TestRatesAreKept(t *testing.T) {
	host, shape := zen5(t), tinyllama(t, gguf.BF16)
	kept := *host
	host.Ceilings = nil
	o := &Options{Compute: "auto", Folder: t.TempDir(), measure: measureZen5(t)}
	choose := func(want, words string) {
		t.Helper()
		c, err := o.Choose(host, shape)
		if err != nil || !slices.Equal(pathsOf(c.Plan), []string{want}) || !strings.Contains(c.Paths, words) {
			t.Errorf("paths %v, want %s: %q, %v", pathsOf(c.Plan), want, c.Paths, err)
		}
	}
	if err := o.keepRates(host, &kept); err != nil {
		t.Fatal(err)
	}
	choose("bf16", "2.01 times the 228.6 of f32")
	first, err := o.Choose(host, shape)
	if err != nil {
		t.Fatal(err)
	}
	service := first.Plan.Service()
	if again, err := o.Replan(host, shape, first.Plan)(&service); err != nil ||
		!slices.Equal(pathsOf(again), []string{"bf16"}) {
		t.Errorf("the plan that is made when PUs go away has other bits: %v", err)
	}
	for i := range kept.Ceilings {
		if c := &kept.Ceilings[i]; c.Type == "bf16" {
			c.Median, c.Max = c.Median/4, c.Max/4
		}
	}
	if err := o.keepRates(host, &kept); err != nil {
		t.Fatal(err)
	}
	choose("f32", "0.50 times")
	o.Compute = "bf16"
	choose("bf16", "")
	o.Compute = "auto"

	if err := os.WriteFile(o.ratesPath(host), []byte("version: [\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, err = o.Choose(host, shape) // measures again
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profiles.Load(o.ratesPath(host)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		choose(pathsOf(first.Plan)[0], first.Paths)
	}
}

// TestRatesAreAskedForWhereTheyCount checks that a start measures rates only where they decide
// something, and that rates for tiles are not reported as a choice of paths.
func TestRatesAreAskedForWhereTheyCount(t *testing.T) {
	host := zen5(t)
	for name, c := range map[string]struct {
		o     Options
		lacks bool
		typ   gguf.Type
		asked bool
		words bool
	}{
		"tiles":           {o: Options{Attend: "f32", Folder: t.TempDir()}, typ: gguf.Q8_0, asked: true},
		"attention":       {o: Options{Compute: "auto", Folder: t.TempDir()}, typ: gguf.Q8_0, asked: true, words: true},
		"a cache by flag": {o: Options{KV: "f32", Folder: t.TempDir()}, typ: gguf.Q8_0, asked: true},
		"a path by flag":  {o: Options{Compute: "f32", Folder: t.TempDir()}, typ: gguf.BF16, asked: true},
		"no dot products": {o: Options{Compute: "auto", Folder: t.TempDir()}, typ: gguf.BF16, lacks: true,
			asked: true},
		"narrower vectors": {o: Options{Compute: "auto", ISA: "avx2", Folder: t.TempDir()}, typ: gguf.BF16},
		"nothing kept":     {o: Options{Attend: "f32"}, typ: gguf.Q8_0},
	} {
		h := *host
		if h.Ceilings = nil; c.lacks {
			h.Host.ISA = []string{"avx2", "avx512", "avx512_vnni"}
		}
		c.o.measure = measureZen5(t)
		if got, err := c.o.Choose(&h, tinyllama(t, c.typ)); err != nil || (got.Paths != "") != c.words {
			t.Errorf("%s: %q, %v", name, got.Paths, err)
		}
		asked := false
		if c.o.Folder != "" {
			_, err := os.Stat(c.o.ratesPath(&h))
			asked = err == nil
		}
		if asked != c.asked {
			t.Errorf("%s: rates were measured: %v", name, asked)
		}
	}
}

// TestRatesChooseTiles checks that a core that loads a third as many vectors gets tiles with fewer
// loads.
func TestRatesChooseTiles(t *testing.T) {
	host := zen5(t)
	loads := func(factor float64) (sum float64) {
		h := *host
		h.Ceilings = slices.Clone(host.Ceilings)
		for i := range h.Ceilings {
			if c := &h.Ceilings[i]; c.Level == "l1" {
				c.Level = profiles.L1Loads
			}
		}
		for class, rate := range map[string]float64{"multiply": 2, "dot": 2, "logic": 4, "shift": 2, "shuffle": 2,
			"convert": 2, "load": factor, "load-word": factor} {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512",
				Type: "ports-" + class, PUs: 1, Figure: profiles.Figure{Median: rate, N: 5, Unit: "instructions/s"}})
		}
		o := Options{Attend: "f32", Folder: t.TempDir(), measure: measureZen5(t)}
		if err := o.keepRates(host, &h); err != nil {
			t.Fatal(err)
		}
		c, err := o.Choose(host, tinyllama(t, gguf.Q4_K))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range c.Plan.Prefill.Tables {
			k := table.Rules[len(table.Rules)-1].Schedule.Kernel
			sum += 1/float64(k.MR) + float64(microkernel.PanelWidth)/float64(k.NR) // for each product
		}
		return sum
	}
	if slow, fast := loads(1), loads(3); slow >= fast {
		t.Errorf("%g loads a product where they are slow, %g where they are fast", slow, fast)
	}
}

// TestOlderRatesGrow checks that stored rates of an older version, which lack those of loads, get
// them, and that the stored ones stay.
func TestOlderRatesGrow(t *testing.T) {
	host := zen5(t)
	kept := *host
	kept.Ceilings = slices.DeleteFunc(slices.Clone(host.Ceilings), func(c profiles.Ceiling) bool { return c.PUs != 1 })
	o := &Options{Folder: t.TempDir(), measure: measureZen5(t)}
	if err := o.keepRates(host, &kept); err != nil {
		t.Fatal(err)
	}
	if _, err := o.rated(host, false, false); err != nil {
		t.Fatal(err)
	}
	grown, err := profiles.Load(o.ratesPath(host))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range kept.Ceilings {
		if g := grown.Ceilings[i]; g.Name() != c.Name() || g.Median != c.Median || g.Max != c.Max {
			t.Errorf("%s was %g and is %s, %g", c.Name(), c.Median, g.Name(), g.Median)
		}
	}
	more := grown.Ceilings[len(kept.Ceilings):]
	loads := func(c profiles.Ceiling) bool { return c.Level == profiles.L1Loads && c.Median > 0 }
	if !slices.ContainsFunc(more, loads) {
		t.Errorf("loads were not added: %+v", more)
	}
}

// TestRatesOfAnotherBuild checks that rates of another build, which may have other kernels, are not
// used, that those of old builds are removed, and that those of other hosts stay.
func TestRatesOfAnotherBuild(t *testing.T) {
	host, dir := zen5(t), t.TempDir()
	stranger := filepath.Join(dir, "rates-0123456789abcdef-a.yaml")
	if err := os.WriteFile(stranger, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, build := range []string{"", "a", "b", "c", "d"} {
		rates := *host
		rates.Ceilings = slices.Clone(host.Ceilings)
		rates.Ceilings[0].Median = float64(i + 1)
		o := &Options{Folder: dir, Build: build}
		if err := o.keepRates(host, &rates); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1e9+i), 0)
		if err := os.Chtimes(o.ratesPath(host), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i, build := range []string{"", "a", "b", "c", "d"} {
		o := &Options{Folder: dir, Build: build}
		kept, err := profiles.Load(o.ratesPath(host))
		if gone := i < 2; gone != (err != nil) {
			t.Errorf("rates of build %q: %v", build, err)
		} else if err == nil && kept.Ceilings[0].Median != float64(i+1) {
			t.Errorf("build %q reads %g of %s", build, kept.Ceilings[0].Median, kept.Ceilings[0].Name())
		}
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Errorf("another host's rates: %v", err)
	}
}

// TestSumsAreRated checks that the rates of integer sums on vectors are measured for a model that
// has weights of their types, once, and decide its path.
func TestSumsAreRated(t *testing.T) {
	host, runs := zen5(t), 0
	rates, recorded := map[string]float64{}, measureZen5(t)
	for _, k := range microkernel.VectorIntegers() {
		rates[k.Many], rates[k.Step], rates[k.Group], rates[k.Once], rates[k.GroupStep] = 3e11, 2e11, 2e11, 2e11, 1e11
	}
	o := &Options{Compute: "auto", Folder: t.TempDir(), measure: func(ctx context.Context, p *profiles.Profile,
		isa microkernel.ISA, types ...string) ([]profiles.Ceiling, error) {
		out, err := recorded(ctx, p, isa, types...)
		for typ, rate := range rates {
			if slices.Contains(types, typ) {
				out = append(out, profiles.Ceiling{Kind: profiles.Compute, ISA: isa.String(), Type: typ, PUs: 1,
					Figure: profiles.Figure{Median: rate, N: 3, Unit: "OP/s"}})
			}
		}
		runs++
		return out, err
	}}
	for i, c := range []struct {
		typ  gguf.Type
		want string
		said bool
	}{{gguf.Q4_K, "int8-256", false}, {gguf.Q2_K, "int8-k", true}, {gguf.Q2_K, "int8-k", true},
		{gguf.Q4_K, "int8-256", false}} {
		got, err := o.Choose(host, tinyllama(t, c.typ))
		if err != nil {
			t.Fatal(err)
		}
		if paths := pathsOf(got.Plan); !slices.Equal(paths, []string{c.want}) ||
			strings.Contains(got.Paths, "q2_k weights use int8-k") != c.said {
			t.Errorf("choice %d: %s uses %v: %q", i, c.typ, paths, got.Paths)
		}
	}
	if runs != 2 {
		t.Errorf("rates were measured %d times, want 2", runs)
	}
}
