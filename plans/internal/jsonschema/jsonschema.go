// Package jsonschema checks values against the part of JSON Schema that the schemas of plans use.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandwich/profiles"
)

// Schema is a JSON Schema. Read fails on keywords that it lacks.
type Schema struct {
	Schema     string             `json:"$schema"`
	Title      string             `json:"title"`
	Defs       map[string]*Schema `json:"$defs"`
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Const      any                `json:"const"`
	Enum       []any              `json:"enum"`
	Pattern    string             `json:"pattern"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	MinItems   int                `json:"minItems"`
	MaxItems   int                `json:"maxItems"`
	Items      *Schema            `json:"items"`
	Required   []string           `json:"required"`
	Properties map[string]*Schema `json:"properties"`
	Names      *Schema            `json:"propertyNames"`
	Additional json.RawMessage    `json:"additionalProperties"` // false, or a schema
}

// Read reads a schema from a file.
func Read(t *testing.T, path string) *Schema {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	var s Schema
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// Check returns an error that names the part of v which violates s, a schema in the document root.
func (root *Schema) Check(s *Schema, at string, v any) error {
	if s.Ref != "" {
		return root.Check(root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")], at, v)
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
			if err := root.Check(s.Items, fmt.Sprintf("%s[%d]", at, i), x); err != nil {
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

func (root *Schema) checkObject(s *Schema, at string, v map[string]any) error {
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
			if err := root.Check(s.Names, at+" name", name); err != nil {
				return err
			}
			of = &Schema{}
			if err := json.Unmarshal(s.Additional, of); err != nil {
				return err
			}
		}
		if err := root.Check(of, at+"."+name, x); err != nil {
			return err
		}
	}
	return nil
}

// Generic decodes YAML into maps, lists and scalars.
func Generic(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := profiles.DecodeYAML(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
