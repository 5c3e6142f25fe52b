package plans_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/jsonschema"
	"sandwich/profiles"
)

func planSchema(t *testing.T) *jsonschema.Schema {
	return jsonschema.Read(t, filepath.Join("schema", "plan.v3.json"))
}

// TestSchemaNamesTheFields checks that each mapping of the schema has exactly the fields of the Go
// type that reads it, requires those that are always written, and that FORMAT.md explains each.
func TestSchemaNamesTheFields(t *testing.T) {
	root := planSchema(t)
	format, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]any{
		"": plans.PlanDoc{}, "model": plans.ModelShape{}, "weight_shape": plans.WeightShapeDoc{}, "rank": plans.Rank{},
		"weight": plans.WeightPlanDoc{}, "phase": plans.Phase{}, "worker_class": plans.ClassDoc{},
		"table": plans.TableDoc{},
		"rule":  plans.RuleText{}, "placement": plans.Placement{},
	} {
		s := root
		if name != "" {
			s = root.Defs[name]
		}
		all, always := yamlFields(reflect.TypeOf(typ))
		var have []string
		for field := range s.Properties {
			have = append(have, field)
		}
		required := slices.Clone(s.Required)
		for _, list := range [][]string{all, always, have, required} {
			slices.Sort(list)
		}
		if !slices.Equal(have, all) || !slices.Equal(required, always) || string(s.Additional) != "false" {
			t.Errorf("%q has the fields %v, requires %v; %T has %v and always writes %v", name, have, required,
				typ, all, always)
		}
		for _, field := range all {
			if !regexp.MustCompile("`([a-z]+\\[\\]\\.)?" + field + "`").Match(format) {
				t.Errorf("FORMAT.md does not explain %s of %q", field, name)
			}
		}
	}
}

// yamlFields lists the fields of a struct in files, and those that are always written.
func yamlFields(typ reflect.Type) (all, always []string) {
	for i := range typ.NumField() {
		name, options, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		if strings.Contains(options, "inline") {
			more, must := yamlFields(typ.Field(i).Type)
			all, always = append(all, more...), append(always, must...)
			continue
		}
		all = append(all, name)
		if !strings.Contains(options, "omitempty") {
			always = append(always, name)
		}
	}
	return all, always
}

// TestWhatIsWrittenFitsTheSchema validates written plans of every kind by the schema.
func TestWhatIsWrittenFitsTheSchema(t *testing.T) {
	root := planSchema(t)
	list := []*bundle.Bundle{bundletest.New(t)}
	for _, name := range []string{"v1/tuned", "v1/two-ranks", "v1/bf16", "v1/experts", "v2/tuned", "v2/two-ranks",
		"v2/bf16"} {
		b, err := bundle.Read(filepath.Join("testdata", name+".plan"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	for _, b := range list {
		text, err := profiles.EncodeYAML(&b.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := root.Check(root, "plan", jsonschema.Generic(t, text)); err != nil {
			t.Errorf("%s: %v", b.Plan.Name, err)
		}
	}
	old, err := os.ReadFile(filepath.Join("testdata", "v1", "tuned.plan", "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if root.Check(root, "plan", jsonschema.Generic(t, old)) == nil {
		t.Error("a plan of version 1 fits the schema of version 3")
	}
}

// TestReservedPlaces checks that a reserved field with its default value is accepted and has the
// same digest, that a value that only the schema allows is refused with the supported ones, and
// that other values are refused by both.
func TestReservedPlaces(t *testing.T) {
	root := planSchema(t)
	text, err := profiles.EncodeYAML(&bundletest.New(t).Plan)
	if err != nil {
		t.Fatal(err)
	}
	const weight, table, plan = "'768x768:q8_0', compute: int8", "- weight: 768x768:q8_0", "tuned: true"
	for _, c := range []struct {
		old, new, want string
		legal          bool
	}{
		{weight, weight + ", block: 32", "", true},
		{weight, weight + ", block: 64", "block 64: this build quantizes activations in blocks of 32 or 256", true},
		{weight, weight + ", block: 256", "weights of type q8_0 have shorter blocks", true},
		{weight, "'768x768:q8_0', compute: int8-256", "write compute int8-256 as int8 with block: 256", false},
		{weight, weight + ", block: 48", "block is 48, not one of [16 32 64 128 256]", false},
		{weight, weight + ", paths: {}", "", true},
		{weight, weight + ", paths: {big: int8, gpu: bf16}", "paths by class of workers: all classes " +
			"compute a weight on one path", true},
		{weight, weight + ", paths: {Big: int8}", `class "Big" is not`, false},
		{weight, weight + ", paths: {big: fp4}", `unknown compute path "fp4"`, false},
		{table, table + "\n      class: ''", `class "" is not`, false},
		{"ways: 1x2", "ways: 1x2x1", "", true},
		{"ways: 1x2", "ways: 1x2x4", `ways "1x2x4": this build does not divide k`, true},
		{"ways: 1x2", "ways: 1x2x0", "ways over k are not in 1..", false},
		{plan, plan + "\nsecond_copy: 0", "", true},
		{plan, plan + "\nsecond_copy: 4096", "second_copy is 4096 bytes: this build keeps one copy", true},
		{plan, plan + "\nsecond_copy: -1", "second_copy is -1 bytes, not in 0..", false},
		{plan, plan + "\nplacement: [{phase: prefill, ops: [all], device: cores}]", "", true},
		{plan, plan + "\nplacement: [{phase: prefill, ops: [attention], device: vulkan0}]",
			"placement[0]: ops attention on device vulkan0: this build moves whole phases", true},
		{plan, plan + "\nplacement: [{phase: both, ops: [all], device: cores}]", "phase \"both\" is not", false},
		{plan, plan + "\nplacement: [{phase: decode, ops: [], device: cores}]", "0 ops, not in 1..64", false},
		{plan, plan + "\nplacement: [{phase: decode, ops: [GEMM], device: cores}]", "op \"GEMM\" is not", false},
		{plan, plan + "\nplacement: [{phase: decode, ops: [all], device: ''}]", "device \"\" is not", false},
	} {
		changed := []byte(strings.Replace(string(text), c.old, c.new, 1))
		if string(changed) == string(text) {
			t.Fatalf("%q does not occur", c.old)
		}
		if err := root.Check(root, "plan", jsonschema.Generic(t, changed)); (err == nil) != c.legal {
			t.Errorf("%s: the schema says %v", c.new, err)
		}
		var p plans.Plan
		err := profiles.DecodeYAML(changed, &p)
		switch {
		case c.want == "" && (err != nil || p.Digest() != bundletest.New(t).Plan.Digest()):
			t.Errorf("%s: %v, or it has another digest", c.new, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want a refusal with %q", c.new, err, c.want)
		}
	}
}

// TestSuperblocks checks that a plan writes and reads superblock activations as a block of 256.
func TestSuperblocks(t *testing.T) {
	w := plans.WeightPlan{plans.WeightKey{N: 4096, K: 4096, Type: "q4_k"}, microkernel.ComputeInt8Superblock}
	text, err := profiles.EncodeYAML(w)
	if err != nil || !strings.Contains(string(text), "compute: int8, block: 256") {
		t.Fatalf("%s %v", text, err)
	}
	var read plans.WeightPlan
	if err := profiles.DecodeYAML(text, &read); err != nil || read != w {
		t.Errorf("%s is read as %+v: %v", text, read, err)
	}
}

// TestPathsOfMatrixUnits checks that plans keep the paths int8-k and bf16-tile by name, that the
// schema allows them and their kernels, and that other weight types are rejected.
func TestPathsOfMatrixUnits(t *testing.T) {
	for _, c := range []struct {
		typ    string
		path   microkernel.Compute
		kernel string
		chain  plans.Chain
	}{
		{"q4_k", microkernel.ComputeInt8K, "avx512/int8-k/q4_k/32x64/ku32/load/amx/spread", plans.ChainInteger},
		{"bf16", microkernel.ComputeBF16Tile, "avx512/bf16-tile/bf16/32x64/ku32/load/tdpbf16", plans.ChainTile},
	} {
		w := plans.WeightPlan{plans.WeightKey{N: 4096, K: 4096, Type: c.typ}, c.path}
		text, err := profiles.EncodeYAML(w)
		if err != nil || !strings.Contains(string(text), "compute: "+c.path.String()) {
			t.Fatalf("%s %v", text, err)
		}
		var read plans.WeightPlan
		if err := profiles.DecodeYAML(text, &read); err != nil || read != w || plans.ChainOf(read.Compute) != c.chain {
			t.Errorf("%s is read as %+v: %v", text, read, err)
		}
		other := strings.Replace(string(text), c.typ, "q8_0", 1)
		err = profiles.DecodeYAML([]byte(other), &read)
		if err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("%s: %v", other, err)
		}
		schema, err := os.ReadFile(filepath.Join("schema", "plan.v3.json"))
		if err != nil {
			t.Fatal(err)
		}
		var definitions struct {
			Defs struct {
				Compute struct{ Enum []string }
				Rule    struct {
					Properties struct{ Kernel struct{ Pattern string } }
				}
			} `json:"$defs"`
		}
		if err := json.Unmarshal(schema, &definitions); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(definitions.Defs.Compute.Enum, c.path.String()) {
			t.Errorf("the schema does not know %s", c.path)
		}
		if p := definitions.Defs.Rule.Properties.Kernel.Pattern; !regexp.MustCompile(p).MatchString(c.kernel) {
			t.Errorf("the schema rejects %s", c.kernel)
		}
	}
}
