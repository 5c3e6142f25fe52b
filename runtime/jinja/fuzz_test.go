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
)

// FuzzTemplate checks that no template panics or exceeds its limits, and that marked strings render
// as the same text. The seeds are the templates of TestJinja2 and the bombs.
func FuzzTemplate(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "jinja2.json"))
	if err != nil {
		f.Fatal(err)
	}
	var doc struct{ Cases []struct{ Template string } }
	if err := json.Unmarshal(raw, &doc); err != nil {
		f.Fatal(err)
	}
	for _, c := range doc.Cases {
		f.Add(c.Template)
	}
	for _, source := range bombs {
		if len(source) < 1000 {
			f.Add(source)
		}
	}
	limits := object.Limits{Time: time.Minute, Steps: 100_000, Bytes: 1 << 20, Text: 64 << 10, Depth: 64}
	f.Fuzz(func(t *testing.T, source string) {
		template, err := Parse(source)
		if err != nil {
			return
		}
		variables := func() *object.Dict {
			message := new(object.Dict).Set("role", "user").Set("content", "abc é")
			return new(object.Dict).Set("messages", object.NewList(message, message)).Set("s", "héllo").
				Set("l", object.NewList(3, 1, 2)).Set("n", 7).Set("d", new(object.Dict).Set("a", 1.5).Set("b",
				object.NewList(nil, true)))
		}
		start := time.Now()
		out, err := template.Render(context.Background(), variables(), now, limits)
		late := errors.Is(err, context.DeadlineExceeded) || time.Since(start) > limits.Time/2
		if late || len(out.Plain) > limits.Text {
			t.Fatalf("%d bytes, %v after %v", len(out.Plain), err, time.Since(start))
		}
		marked, failed := template.Render(context.Background(), object.Mark(variables(), 1).(*object.Dict), now, limits)
		if err == nil && failed == nil && marked.Plain != out.Plain {
			t.Fatalf("marked strings give %q, others %q", marked.Plain, out.Plain)
		}
		checkSpans(t, marked.Text)
	})
}
