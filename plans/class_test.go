package plans_test

import (
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/diff"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/jsonschema"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
	"sandwich/topotree"
)

// TestClassesRoundTrip checks that written classes fit the schema, are read back, and appear in the
// differences from a plan without them.
func TestClassesRoundTrip(t *testing.T) {
	p := plantest.Heterogeneous(t)
	text, err := profiles.EncodeYAML(p)
	if err != nil {
		t.Fatal(err)
	}
	root := planSchema(t)
	if err := root.Check(root, "plan", jsonschema.Generic(t, text)); err != nil {
		t.Error(err)
	}
	var again plans.Plan
	if err := profiles.DecodeYAML(text, &again); err != nil {
		t.Fatal(err)
	}
	if again.Digest() != p.Digest() {
		t.Error("the plan that is read has another digest")
	}
	if err := again.Validate(); err != nil {
		t.Error(err)
	}
	changes := diff.Plans(&bundletest.New(t).Plan, p)
	classes, tables := 0, 0
	for _, c := range changes {
		if c.Group == "classes" && c.New == "little (avx2) on PUs 1" {
			classes++
		}
		if strings.Contains(c.Group, "(little)") {
			tables++
		}
	}
	if classes != 1 || tables == 0 {
		t.Errorf("%d changes of classes and %d of their tables in %+v", classes, tables, changes)
	}
}

// TestClassesRefused checks the errors for classes that no machine can run.
func TestClassesRefused(t *testing.T) {
	avx512, err := microkernel.ParseISA("avx512")
	if err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(p *plans.Plan){
		"is not 1 to 32 lower-case letters": func(p *plans.Plan) { p.Classes[0].Name = "Big" },
		"the name is reserved for workers":  func(p *plans.Plan) { p.Classes[0].Name = "main" },
		"has no PU":                         func(p *plans.Plan) { p.Classes[0].PUs = topotree.CPUSet{} },
		"which work in no phase":            func(p *plans.Plan) { p.Classes[0].PUs = topotree.NewCPUSet(77) },
		"the classes cover all PUs":         func(p *plans.Plan) { p.Classes[0].PUs = p.PUs() },
		"is listed twice":                   func(p *plans.Plan) { p.Classes = append(p.Classes, p.Classes[0]) },
		"in each of 2 classes":              func(p *plans.Plan) { p.Decode.Tables = p.Decode.Tables[1:] },
		"where the weights have":            func(p *plans.Plan) { p.Decode.Tables[0].Class = "little" },
		"need workers of one class":         func(p *plans.Plan) { setWays(&p.Prefill.Tables[0].Rules[0].Schedule, p) },
		"but the class has " +
			"avx2": func(p *plans.Plan) { p.Prefill.Tables[len(p.Prefill.Tables)-1].Rules = wide(p) },
		"is in the classes little and x": func(p *plans.Plan) {
			p.Classes = append(p.Classes, plans.Class{"x", avx512, topotree.NewCPUSet(1), "",
				false})
		},
	} {
		p := plantest.Heterogeneous(t)
		if spoil(p); p.Validate() == nil || !strings.Contains(p.Validate().Error(), want) {
			t.Errorf("%v, want a refusal with %q", p.Validate(), want)
		}
	}
}

func setWays(s *plans.Schedule, p *plans.Plan) { s.WaysM, s.WaysN = 1, p.Prefill.PUs.Count() }

// wide is the main class's rules of the weight of the last table.
func wide(p *plans.Plan) []plans.Rule {
	t, _ := p.Prefill.Table(p.Prefill.Tables[len(p.Prefill.Tables)-1].WeightKey)
	return t.Rules
}

// TestFitClasses checks that only optional classes that the host lacks are removed; their workers
// become main ones.
func TestFitClasses(t *testing.T) {
	p := plantest.Heterogeneous(t)
	p.Classes[0].Kind = "atom"
	m := &topotree.Machine{}
	have := p.Needs()
	if fit := p.FitClasses(have, m); len(fit.Classes) != 1 {
		t.Error("a class that is not optional was dropped")
	}
	p.Classes[0].Optional = true
	fit := p.FitClasses(have, m)
	if len(fit.Classes) != 0 || len(p.Classes) != 1 {
		t.Errorf("classes %v of %v are left", fit.Classes, p.Classes)
	}
	if err := fit.Validate(); err != nil {
		t.Error(err)
	}
	if p.Classes[0].Lacks(have, m) == "" || p.Classes[0].Lacks(0, m) == "" {
		t.Error("the host has what it lacks")
	}
	m.CoreTypes = []topotree.CoreType{{Name: "core", CPUs: topotree.NewCPUSet(0)},
		{Name: "atom", CPUs: topotree.NewCPUSet(1, 2)}}
	if fit := p.FitClasses(have|microkernel.HasAVX2, m); len(fit.Classes) != 1 {
		t.Error("a class that the host has was dropped")
	}
}

// TestUseTrimsClasses checks that classes keep the available PUs, and that the tables of the only
// remaining class become the main ones.
func TestUseTrimsClasses(t *testing.T) {
	for _, c := range []struct {
		pus     topotree.CPUSet
		classes int
		isa     string
	}{{topotree.NewCPUSet(0, 1), 1, "avx512"}, {topotree.NewCPUSet(0), 0, "avx512"}, {topotree.NewCPUSet(1), 0,
		"avx2"}} {
		p := plantest.Heterogeneous(t)
		s, err := plans.NewService([]plans.Rank{{PUs: c.pus, NUMANode: -1}}, c.pus, c.pus)
		if err != nil {
			t.Fatal(err)
		}
		p.Use(s)
		if err := p.Validate(); err != nil {
			t.Errorf("on %s: %v", c.pus, err)
		}
		if isa := p.ISAOf("").String(); len(p.Classes) != c.classes || isa != c.isa {
			t.Errorf("on %s: %d classes, the main one of %s", c.pus, len(p.Classes), isa)
		}
	}
}

func TestParseWorkerISAs(t *testing.T) {
	w, err := plans.ParseWorkerISAs("avx512,1=avx2,3=go")
	if err != nil || w.All != "avx512" || w.Of[1].String() != "avx2" || w.Of[3].String() != "go" || len(w.Of) != 2 {
		t.Errorf("%+v, %v", w, err)
	}
	for text, want := range map[string]string{"1=avx2,avx512": "first, and only once", "avx2,avx2": "first, and " +
		"only once",
		"x=avx2": "not a worker index", "-1=avx2": "not a worker index", "1=avx2,1=go": "twice", "1=mmx": "mmx",
		"=avx2": "not a worker index", ",": ""} {
		if _, err := plans.ParseWorkerISAs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for want, have := range map[string]microkernel.Features{"worker 1 cannot run avx2": 0,
		"there is no worker 3": microkernel.HasAVX2} {
		two, err := plans.ParseWorkerISAs(map[bool]string{true: "1=avx2", false: "3=avx2"}[have == 0])
		if err != nil {
			t.Fatal(err)
		}
		if err := two.Check(have, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzParseWorkerISAs(f *testing.F) {
	for _, text := range []string{"", "avx2", "1=avx2", "avx512,0=avx2,1=go", "1=", "=", ",,",
		"99999999999999999999=avx2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := plans.ParseWorkerISAs(text); err == nil {
			_ = w.Check(^microkernel.Features(0), 4)
		}
	})
}
