package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// tinyllama is the shape of a model whose weights are all of one type.
func tinyllama(t *testing.T, typ gguf.Type) plans.ModelShape {
	t.Helper()
	config, err := model.Preset("tinyllama-1.1b")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := config.Shape(model.Uniform(typ))
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

// zen5 is a recorded machine whose dot products of bf16 run at twice the rate of float32.
func zen5(t *testing.T) *profiles.Profile {
	t.Helper()
	p, err := profiles.Load(filepath.Join(referenceFolder(t, "machines"), "zen5-2c", "host.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRecordedMachineTakesPairs: by the rates that were measured on a Zen 5, and not because of its
// name.
func TestRecordedMachineTakesPairs(t *testing.T) {
	p := zen5(t)
	plan, err := thumb.Default(p, tinyllama(t, gguf.BF16), thumb.Options{})
	if err != nil || plan.Exact() || !slices.Equal(pathsOf(plan), []string{"bf16"}) {
		t.Errorf("paths %v: %v", pathsOf(plan), err)
	}
	for i, c := range p.Ceilings { // an Emerald Rapids makes every other cycle one dot product of 512 bits
		if c.Type == "bf16" {
			p.Ceilings[i].Median, p.Ceilings[i].Min, p.Ceilings[i].Max = c.Median/4, c.Min/4, c.Max/4
		}
	}
	plan, err = thumb.Default(p, tinyllama(t, gguf.BF16), thumb.Options{})
	if err != nil || !plan.Exact() || !slices.Equal(pathsOf(plan), []string{"f32"}) {
		t.Errorf("at half the rate: paths %v: %v", pathsOf(plan), err)
	}
}

// TestRatesAreKept: the choice that the rates made at the first start is that of every later one,
// whatever is measured then.
func TestRatesAreKept(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	host, shape := zen5(t), tinyllama(t, gguf.BF16)
	kept := *host
	host.Ceilings = nil
	f := sessionFlags{compute: "auto"}
	choose := func(want, words string) {
		t.Helper()
		c, err := f.choosePlan(host, shape)
		if err != nil || !slices.Equal(pathsOf(c.plan), []string{want}) || !strings.Contains(c.paths, words) {
			t.Errorf("paths %v, want %s: %q, %v", pathsOf(c.plan), want, c.paths, err)
		}
	}
	if err := keepRates(ratesPath(host), &kept); err != nil {
		t.Fatal(err)
	}
	choose("bf16", "2.01 times the 228.6 of f32")
	s := session{profile: host, shape: shape}
	if err := s.choose(&f); err != nil {
		t.Fatal(err)
	}
	service := s.plan.Service()
	if again, err := s.replan(&service); err != nil || !slices.Equal(pathsOf(again), []string{"bf16"}) {
		t.Errorf("the plan that is made when PUs go away has other bits: %v", err)
	}
	for i := range kept.Ceilings {
		if c := &kept.Ceilings[i]; c.Type == "bf16" {
			c.Median, c.Max = c.Median/4, c.Max/4
		}
	}
	if err := keepRates(ratesPath(host), &kept); err != nil {
		t.Fatal(err)
	}
	choose("f32", "0.50 times")
	f.compute = "bf16"
	choose("bf16", "")
	f.compute = "auto"

	if err := os.WriteFile(ratesPath(host), []byte("version: [\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, err := f.choosePlan(host, shape) // measures this machine, unless it has no PU 0
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profiles.Load(ratesPath(host)); err != nil {
		t.Skipf("this machine's rates cannot be measured under the name of another: %s", first.paths)
	}
	for range 3 {
		choose(pathsOf(first.plan)[0], first.paths)
	}
}

// TestRatesAreAskedForWhereTheyCount: no start waits for a measurement that decides nothing.
func TestRatesAreAskedForWhereTheyCount(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	host := zen5(t)
	for name, c := range map[string]struct {
		f     sessionFlags
		typ   gguf.Type
		lacks bool
	}{
		"other weights":    {f: sessionFlags{compute: "auto"}, typ: gguf.Q8_0},
		"a path by flag":   {f: sessionFlags{compute: "f32"}, typ: gguf.BF16},
		"narrower vectors": {f: sessionFlags{compute: "auto", isa: "avx2"}, typ: gguf.BF16},
		"no dot products":  {f: sessionFlags{compute: "auto"}, typ: gguf.BF16, lacks: true},
	} {
		h := *host
		if c.lacks {
			h.Host.ISA = []string{"avx2", "avx512", "avx512_vnni"}
		}
		if got, err := c.f.choosePlan(&h, tinyllama(t, c.typ)); err != nil || got.paths != "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if _, err := os.Stat(ratesPath(&h)); err == nil {
			t.Errorf("%s: rates were measured", name)
		}
	}
}
