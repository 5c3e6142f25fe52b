package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandwich/runtime/jinja/internal/object"
	"sandwich/runtime/refdata"
)

// ample are limits for tests of other properties.
var ample = object.Limits{Time: time.Minute, Steps: 5_000_000, Bytes: 32 << 20, Text: 1 << 20, Depth: 64}

// fromJSON parses a document.
func fromJSON(t *testing.T, raw []byte) any {
	t.Helper()
	v, err := object.FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type parityCase struct {
	ID       string
	Messages json.RawMessage
	Vars     json.RawMessage
	Expected *string
	Error    json.RawMessage
}

// TestParity renders the templates of real models over conversations with tools, tool results and
// reasoning, and compares with Jinja2. One case is about the sandbox that it ran in, which refuses
// to append to a list.
func TestParity(t *testing.T) {
	for _, file := range refdata.Glob(t, "parity2/templates/*.json") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Template, Now string
			Cases         []parityCase
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse("2006-01-02T15:04:05", doc.Now)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(filepath.Join(filepath.Dir(file), doc.Template))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(doc.Template, func(t *testing.T) {
			template, err := Parse(string(source))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range doc.Cases {
				if doc.Template != "Kimi-K2-Instruct.jinja" || c.Expected != nil {
					c.check(t, template, now)
				}
			}
		})
	}
}

func (c parityCase) check(t *testing.T, template *Template, now time.Time) {
	t.Helper()
	vars := fromJSON(t, c.Vars).(*object.Dict)
	vars.Set("messages", fromJSON(t, c.Messages))
	out, err := template.Render(context.Background(), vars, now, ample)
	got := out.Plain
	if c.Expected == nil {
		if raised := new(object.RaisedError); !errors.As(err, &raised) {
			t.Errorf("%s: got %q, %v, want the refusal %s", c.ID, got, err, c.Error)
		}
		return
	}
	if err != nil || got != *c.Expected {
		t.Errorf("%s %s: %v\n got %q\nwant %q", c.ID, c.Vars, err, got, *c.Expected)
	}
}
