package plan

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
)

// writePlan writes the default plan of a model for a built-in machine, with some phases on a device
// that has rates or not.
func writePlan(t *testing.T, family string, rated bool, phases ...phase.Phase) string {
	t.Helper()
	host, err := profiles.Builtin("core-ultra-125h")
	if err != nil {
		t.Fatal(err)
	}
	shape, err := synth.Shape(synth.Small(family), synth.Uniform(gguf.Q8_0))
	if err != nil {
		t.Fatal(err)
	}
	p, err := heuristic.Default(host, shape, heuristic.Options{Attend: "f32", KV: "f16"})
	if err != nil {
		t.Fatal(err)
	}
	p.Placement = plans.PlaceOn("sim:7", shape.DeviceOps(), false, phases...)
	d := devrates.Device{ID: "sim:7", Name: "a <device>", API: "sim", WriteBytesPerSecond: 1e10,
		CopyBackBytesPerSecond: 1e10, LaunchSeconds: 1e-5}
	if rated {
		ops, err := modelshape.Outline(shape)
		if err != nil {
			t.Fatal(err)
		}
		products, err := offload.Products(ops, p)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"attention", "rows"}
		for _, x := range products {
			names = append(names, x.Class())
		}
		for _, name := range names {
			d.Classes = append(d.Classes, devrates.Class{Name: name, MemoryIntensity: 1, BytesPerSecond: 4e11,
				ComputeIntensity: 100, FLOPPerSecond: 2e13, LeastSeconds: 2e-6})
		}
	}
	host.Devices = []devrates.Device{d}
	b := bundle.Bundle{Plan: *p, Host: *host, Evidence: evidence.Evidence{Version: p.Version,
		Created: "2026-01-31T12:00:00Z"}}
	dir := filepath.Join(t.TempDir(), "p.plan")
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runShow runs plan show and returns its output.
func runShow(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	var out bytes.Buffer
	c := NewPlan()
	c.SetOut(&out)
	c.SetArgs(append([]string{"show"}, args...))
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// TestShowGraph checks the text of graphs of plans with and without a device.
func TestShowGraph(t *testing.T) {
	for name, c := range map[string]struct {
		plan string
		want []string
		not  string
	}{
		"cores": {writePlan(t, "llama", false), []string{"Execution graph of prefill, ",
			" after 256 positions: predicted ", "KV cache of cores", "Execution graph of decode, 1 sequence after"},
			"sim:7"},
		"device": {writePlan(t, "llama", true, phase.Prefill), []string{"sim:7", "dynamic, static", "cores ",
			"keys and values", "yes, ", "residual"}, "unknown"},
		"no rates": {writePlan(t, "llama", false, phase.Decode), []string{"predicted time unknown", "yes, when read",
			"Times on sim:7 are unknown: neither host.yaml nor this host has its measured rates"}, "NaN"},
		"experts": {writePlan(t, "qwen3moe", true, phase.Prefill, phase.Decode), []string{"experts", "router logits"},
			"NaN"},
	} {
		out, err := runShow(t, c.plan, "--graph")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if strings.Contains(out, c.not) {
			t.Errorf("%s: %q in\n%s", name, c.not, out)
		}
	}
}

// TestShowGraphFormats checks JSON, SVG on stdout and in a file, and wrong flags.
func TestShowGraphFormats(t *testing.T) {
	plan := writePlan(t, "gemma3", true, phase.Prefill)
	out, err := runShow(t, plan, "--graph", "--format", "json")
	var doc struct {
		Graphs []struct {
			Phase   string
			Kernels []struct {
				Bound    string
				Variants []struct{ Seconds float64 }
			}
			Seconds float64
		}
	}
	if err = errors.Join(err, json.Unmarshal([]byte(out), &doc)); err != nil || len(doc.Graphs) != 2 ||
		doc.Graphs[0].Seconds <= 0 || len(doc.Graphs[0].Kernels) < 4 {
		t.Errorf("%v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "g.svg")
	drawn, err := runShow(t, plan, "--graph=svg", "--svg", file)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(file)
	if err != nil || string(saved) != drawn {
		t.Errorf("%v; --svg wrote %d bytes, --graph=svg %d", err, len(saved), len(drawn))
	}
	d, texts := xml.NewDecoder(strings.NewReader(drawn)), 0
	for {
		x, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := x.(xml.StartElement); ok && start.Name.Local == "text" {
			texts++
		}
	}
	if texts < 40 || strings.Contains(drawn, "NaN") {
		t.Errorf("%d texts in the picture", texts)
	}
	for _, args := range [][]string{{"--graph=tree"}, {"--graph", "--rows", "0"}, {"--graph", "--sequences", "-1"},
		{"--graph", "--context", "-1"}} {
		if _, err := runShow(t, append(args, plan)...); err == nil || !strings.Contains(err.Error(), "give ") {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
