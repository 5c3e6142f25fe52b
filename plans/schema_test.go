package plans

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// schema is what our schemas use of JSON Schema. A keyword that it does not know fails the test.
type schema struct {
	Schema     string             `json:"$schema"`
	Title      string             `json:"title"`
	Defs       map[string]*schema `json:"$defs"`
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Const      any                `json:"const"`
	Enum       []any              `json:"enum"`
	Pattern    string             `json:"pattern"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	MinItems   int                `json:"minItems"`
	MaxItems   int                `json:"maxItems"`
	Items      *schema            `json:"items"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Names      *schema            `json:"propertyNames"`
	Additional json.RawMessage    `json:"additionalProperties"` // false, or a schema
}

func planSchema(t *testing.T) *schema { return readSchema(t, filepath.Join("schema", "plan.v3.json")) }

func readSchema(t *testing.T, path string) *schema {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	var s schema
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// check says where v breaks the schema s of the document root.
func (root *schema) check(s *schema, at string, v any) error {
	if s.Ref != "" {
		return root.check(root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")], at, v)
	}
	is := func(x any) bool { return fmt.Sprint(x) == fmt.Sprint(v) && v != nil }
	switch {
	case s.Const != nil && !is(s.Const):
		return fmt.Errorf("%s is %v, not %v", at, v, s.Const)
	case s.Enum != nil && !slices.ContainsFunc(s.Enum, is):
		return fmt.Errorf("%s is %v, none of %v", at, v, s.Enum)
	}
	switch v := v.(type) {
	case map[string]any:
		return root.checkObject(s, at, v)
	case []any:
		if s.Type != "array" || len(v) < s.MinItems || s.MaxItems > 0 && len(v) > s.MaxItems {
			return fmt.Errorf("%s is a list of %d", at, len(v))
		}
		for i, x := range v {
			if err := root.check(s.Items, fmt.Sprintf("%s[%d]", at, i), x); err != nil {
				return err
			}
		}
	case string:
		if s.Enum == nil && s.Type != "string" || s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			return fmt.Errorf("%s is %q", at, v)
		}
	case int:
		outside := s.Minimum != nil && float64(v) < *s.Minimum || s.Maximum != nil && float64(v) > *s.Maximum
		if s.Enum == nil && s.Const == nil && s.Type != "integer" || outside {
			return fmt.Errorf("%s is %d", at, v)
		}
	case bool:
		if s.Type != "boolean" {
			return fmt.Errorf("%s is %v", at, v)
		}
	default:
		return fmt.Errorf("%s is a %T", at, v)
	}
	return nil
}

func (root *schema) checkObject(s *schema, at string, v map[string]any) error {
	if s.Type != "object" {
		return fmt.Errorf("%s is a mapping", at)
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s has no %s", at, name)
		}
	}
	for name, x := range v {
		of := s.Properties[name]
		if of == nil {
			if string(s.Additional) == "false" {
				return fmt.Errorf("%s has the field %s", at, name)
			}
			if err := root.check(s.Names, at+" name", name); err != nil {
				return err
			}
			of = &schema{}
			if err := json.Unmarshal(s.Additional, of); err != nil {
				return err
			}
		}
		if err := root.check(of, at+"."+name, x); err != nil {
			return err
		}
	}
	return nil
}

// TestSchemaNamesTheFields: each mapping of the schema has the fields of the Go type that reads it,
// no more and no fewer, and requires those that are always written; FORMAT.md explains each.
func TestSchemaNamesTheFields(t *testing.T) {
	root := planSchema(t)
	format, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]any{
		"": planDoc{}, "model": ModelShape{}, "weight_shape": weightShapeDoc{}, "rank": Rank{},
		"weight": weightPlanDoc{}, "phase": Phase{}, "worker_class": classDoc{}, "table": tableDoc{},
		"rule": ruleYAML{}, "placement": Placement{},
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

// generic is a YAML document without types.
func generic(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := profiles.DecodeYAML(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWhatIsWrittenFitsTheSchema: plans of every kind that there is.
func TestWhatIsWrittenFitsTheSchema(t *testing.T) {
	root := planSchema(t)
	list := []*Bundle{testBundle(t)}
	for _, name := range olderBundles {
		b, err := Read(filepath.Join("testdata", name+".plan"))
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
		if err := root.check(root, "plan", generic(t, text)); err != nil {
			t.Errorf("%s: %v", b.Plan.Name, err)
		}
	}
	old, err := os.ReadFile(filepath.Join("testdata", "v1", "tuned.plan", planFile))
	if err != nil {
		t.Fatal(err)
	}
	if root.check(root, "plan", generic(t, old)) == nil {
		t.Error("a plan of version 1 fits the schema of version 3")
	}
}

// TestReservedPlaces: what only spells out the default is read and has the same digest; what this
// build cannot follow is in the schema and is refused with what it can; what is neither is refused
// by both.
func TestReservedPlaces(t *testing.T) {
	root := planSchema(t)
	text, err := profiles.EncodeYAML(&testBundle(t).Plan)
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
		if err := root.check(root, "plan", generic(t, changed)); (err == nil) != c.legal {
			t.Errorf("%s: the schema says %v", c.new, err)
		}
		var p Plan
		err := profiles.DecodeYAML(changed, &p)
		switch {
		case c.want == "" && (err != nil || p.Digest() != testBundle(t).Plan.Digest()):
			t.Errorf("%s: %v, or it has another digest", c.new, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want a refusal with %q", c.new, err, c.want)
		}
	}
}

// TestSuperblocks checks that a plan writes and reads superblock activations as a block of 256.
func TestSuperblocks(t *testing.T) {
	w := WeightPlan{WeightKey{N: 4096, K: 4096, Type: "q4_k"}, microkernel.ComputeInt8Superblock}
	text, err := profiles.EncodeYAML(w)
	if err != nil || !strings.Contains(string(text), "compute: int8, block: 256") {
		t.Fatalf("%s %v", text, err)
	}
	var read WeightPlan
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
		chain  Chain
	}{
		{"q4_k", microkernel.ComputeInt8K, "avx512/int8-k/q4_k/32x64/ku32/load/amx/spread", ChainInteger},
		{"bf16", microkernel.ComputeBF16Tile, "avx512/bf16-tile/bf16/32x64/ku32/load/tdpbf16", ChainTile},
	} {
		w := WeightPlan{WeightKey{N: 4096, K: 4096, Type: c.typ}, c.path}
		text, err := profiles.EncodeYAML(w)
		if err != nil || !strings.Contains(string(text), "compute: "+c.path.String()) {
			t.Fatalf("%s %v", text, err)
		}
		var read WeightPlan
		if err := profiles.DecodeYAML(text, &read); err != nil || read != w || ChainOf(read.Compute) != c.chain {
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
