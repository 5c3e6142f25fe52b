package profiles

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write schema.json anew")

// schema is the part of JSON Schema that a profile needs.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Closed      *bool              `json:"additionalProperties,omitempty"`
	Items       *schema            `json:"items,omitempty"`
}

// schemaOf is what the YAML package reads into a Go type.
func schemaOf(t reflect.Type) *schema {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return &schema{Type: "array", Items: schemaOf(t.Elem())}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Struct:
		s := &schema{Type: "object", Properties: map[string]*schema{}, Closed: new(bool)}
		s.fields(t)
		slices.Sort(s.Required)
		return s
	}
	panic(fmt.Sprintf("no schema of %v", t))
}

func (s *schema) fields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if strings.Contains(options, "inline") {
			s.fields(f.Type)
			continue
		}
		s.Properties[name] = schemaOf(f.Type)
		if !strings.Contains(options, "omitempty") {
			s.Required = append(s.Required, name)
		}
	}
}

// walk visits every field under its path: sets[].flows[].node.
func (s *schema) walk(path string, visit func(path string, s *schema)) {
	for s.Type == "array" {
		s, path = s.Items, path+"[]"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		visit(at, field)
		field.walk(at, visit)
	}
}

// row is a line of a table of FORMAT.md: `path` | type | unit | meaning.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z ]+) \\| ([^|]*) \\| ([^|]+) \\|$")

// TestSchema checks that FORMAT.md has every field with type, unit and meaning and nothing else,
// and that schema.json follows from the Go types and these texts. -update writes it.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	type told struct{ typ, unit, meaning string }
	documented := map[string]told{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if _, twice := documented[m[1]]; twice {
			t.Errorf("FORMAT.md has `%s` twice", m[1])
		}
		documented[m[1]] = told{m[2], strings.TrimSpace(m[3]), m[4]}
	}
	s := schemaOf(reflect.TypeFor[document]())
	s.Dialect = "https://json-schema.org/draft/2020-12/schema"
	s.Title = fmt.Sprintf("sandwich host profile, version %d", Version)
	s.walk("", func(path string, field *schema) {
		d, ok := documented[path]
		if !ok {
			t.Errorf("FORMAT.md lacks `%s` (%s)", path, field.kind())
			return
		}
		delete(documented, path)
		if d.typ != field.kind() {
			t.Errorf("FORMAT.md says that `%s` is of type %s, it is of type %s", path, d.typ, field.kind())
		}
		if field.Description = d.meaning; d.unit != "" {
			field.Description += " (" + d.unit + ")"
		}
		if number := strings.HasSuffix(d.typ, "number") || strings.HasSuffix(d.typ, "integer"); number && d.unit == "" {
			t.Errorf("FORMAT.md gives `%s` no unit", path)
		}
	})
	for path := range documented {
		t.Errorf("FORMAT.md has `%s`, which no profile has", path)
	}
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile("schema.json"); string(got) != string(want) {
		t.Error("schema.json is not what the types and FORMAT.md say: go test ./profiles -run TestSchema -update")
	}
}

// kind is the type as FORMAT.md names it: "list of number".
func (s *schema) kind() string {
	if s.Type == "array" {
		return "list of " + s.Items.kind()
	}
	return s.Type
}

// TestWrittenProfilesFitTheSchema validates written profiles by schema.json.
func TestWrittenProfilesFitTheSchema(t *testing.T) {
	data, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	hosts := []*Profile{structured(t), twoBySMT(t, nil)}
	for _, name := range BuiltinNames() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, p)
	}
	for _, p := range hosts {
		text, err := EncodeYAML(p)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := s.accepts("", v); err != nil {
			t.Errorf("%s: %v", p.Machine.Source, err)
		}
	}
	if err := s.accepts("", map[string]any{"version": "2"}); err == nil {
		t.Error("anything fits")
	}
}

// accepts is a validator of what schema can say.
func (s *schema) accepts(path string, v any) error {
	ok := false
	switch v := v.(type) {
	case map[string]any:
		if ok = s.Type == "object"; !ok {
			break
		}
		for _, name := range s.Required {
			if _, there := v[name]; !there {
				return fmt.Errorf("%s.%s is missing", path, name)
			}
		}
		for name, value := range v {
			if s.Properties[name] == nil {
				return fmt.Errorf("%s.%s is unknown", path, name)
			}
			if err := s.Properties[name].accepts(path+"."+name, value); err != nil {
				return err
			}
		}
	case []any:
		if ok = s.Type == "array"; !ok {
			break
		}
		for _, value := range v {
			if err := s.Items.accepts(path+"[]", value); err != nil {
				return err
			}
		}
	case string:
		ok = s.Type == "string"
	case bool:
		ok = s.Type == "boolean"
	case int:
		ok = s.Type == "integer" || s.Type == "number"
	case float64:
		ok = s.Type == "number"
	}
	if !ok {
		return fmt.Errorf("%s is %T, not of type %s", path, v, s.Type)
	}
	return nil
}
