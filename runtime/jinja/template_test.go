package jinja

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/jinja/internal/object"
)

// now is the time for which the references were rendered.
var now = time.Date(2025, 3, 14, 15, 9, 26, 0, time.UTC)

// TestJinja2 compares with the output or the failure of Jinja2 3.1.6 for the same templates and
// variables.
func TestJinja2(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "jinja2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Vars  json.RawMessage
		Cases []struct {
			Template, Want, Error string
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Cases {
		got, err := render(t, c.Template, fromJSON(t, doc.Vars).(*object.Dict))
		switch {
		case c.Error == "" && (err != nil || got != c.Want):
			t.Errorf("%s: %v\n got %q\nwant %q", c.Template, err, got, c.Want)
		case c.Error != "" && err == nil:
			t.Errorf("%s: got %q, where Jinja2 says %s", c.Template, got, c.Error)
		case err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 500):
			t.Errorf("%s: %q is not one short sentence", c.Template, err)
		}
	}
}

// TestBigIntegers checks that integers of a document above 64 bits print exactly, as in Python.
func TestBigIntegers(t *testing.T) {
	vars := fromJSON(t, []byte(`{"v": {"maximum": 18446744073709551615, "minimum": -99999999999999999999}}`))
	const source = "{{ v|tojson }} {{ v }} {{ v.maximum is integer and v.maximum > 1 }} {{ v.minimum + 1 < 0 }}"
	const want = `{"maximum": 18446744073709551615, "minimum": -99999999999999999999} ` +
		`{'maximum': 18446744073709551615, 'minimum': -99999999999999999999} True True`
	if got, err := render(t, source, vars.(*object.Dict)); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func render(t *testing.T, source string, vars *object.Dict) (string, error) {
	t.Helper()
	template, err := Parse(source)
	if err != nil {
		return "", err
	}
	out, err := template.Render(context.Background(), vars, now, ample)
	return out.Plain, err
}
