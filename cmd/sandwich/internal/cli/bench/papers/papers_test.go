package papers

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sandwich/tuner/measure/load"
)

const paramsFile = "../../../../../../docs/papers.params.yaml"

// TestPapers runs a short trace of figure 10 with the embedded model in the engine.
func TestPapers(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	var out bytes.Buffer
	c := New()
	c.SetOut(&out)
	c.SetArgs([]string{"--params", paramsFile, "--minutes", "0.5", "--figures", "10", "--models", "small",
		"--threads", "1", "--seed", "3", "--format", "json"})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rows []load.PaperRow
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err, out.String())
	}
	if len(rows) != 6 || rows[0].Paper != "0.048 s" || rows[0].Factor <= 1 || rows[0].Standin == "" {
		t.Errorf("%+v", rows)
	}
	for _, r := range rows {
		if r.Figure != "10" || r.Model != "llama-3.2-3b" || strings.Contains(r.What, "decode") && r.Ours <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestPapersRefuses checks wrong flags and files.
func TestPapersRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--figures 11":            "--figures 11 is unknown; give 8, 9 or 10",
		"--models 3b":             "--models 3b is unknown; give small, large or both",
		"--models=":               "is empty",
		"--minutes -1":            "--minutes -1 is out of range",
		"--seeds 0":               "--seeds 0 is out of range",
		"--params nosuch.yaml":    "--params: open nosuch.yaml",
		"--params papers_test.go": "is invalid",
		"--quantum -1":            "--quantum",
	} {
		c := New()
		c.SilenceUsage, c.SilenceErrors = true, true
		c.SetArgs(strings.Fields(args))
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
