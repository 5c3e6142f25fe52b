package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"sandwich/plans/export"
	"sandwich/plans/export/replica"
	"sandwich/plans/internal/bundletest"
)

// options are the Options of the tests.
func options(t *testing.T) export.Options {
	t.Helper()
	replicas, err := replica.Parse([]string{"10.0.0.1:8080", "10.0.0.2:8081"})
	if err != nil {
		t.Fatal(err)
	}
	return export.Options{Image: "sandwich:1.2.3-4.gabc", Memory: 1 << 30, Replicas: replicas, Capacity: 72,
		DrainDelay: 10 * time.Second, Grace: 30 * time.Second}
}

// exportTest returns the files of a target, one after the other.
func exportTest(t *testing.T, target string) string {
	t.Helper()
	files, err := export.Files(bundletest.New(t), target, options(t))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		text += f.Text
	}
	return text
}

// TestExportsSayWhatIsDocumented checks the options of each tool, whose document is named: the
// plan's prefill runs on PUs 0-3 and its decode on 0 and 2.
func TestExportsSayWhatIsDocumented(t *testing.T) {
	for _, c := range []struct {
		target, source string
		want           []string
	}{
		{"llama-server", "llama.cpp, tools/server/README.md, common params", []string{
			`GOMP_CPU_AFFINITY="0 2 1 3" `, "--threads 2 ", "--cpu-mask 5 ", "--cpu-strict 1", "--threads-batch 4 ", "--cpu-mask-batch f ", "--cpu-strict-batch 1", "--cache-type-k f16",
			"--cache-type-v f16", "--ubatch-size ", "--model MODEL.gguf"}},
		{"vllm", "vLLM, docs/getting_started/installation/cpu: related runtime environment variables",
			[]string{"VLLM_CPU_OMP_THREADS_BIND='0-3'", "VLLM_CPU_KVCACHE_SPACE=", "--tensor-parallel-size 1",
				"# lost: vLLM has one set of PUs for both phases"}},
		{"numactl", "numactl(8)", []string{"numactl --physcpubind=0-3", "PROGRAM"}},
		{"openmp", "OpenMP 5.2, chapter 21: environment variables", []string{"OMP_NUM_THREADS=4",
			"OMP_PLACES='{0},{1},{2},{3}'", "OMP_PROC_BIND=close"}},
		{"systemd", "systemd.exec(5), systemd.resource-control(5)", []string{"CPUAffinity=0-3", "AllowedCPUs=0-3",
			"MemoryMax=1344M", "ExecStart=/usr/local/bin/sandwich serve --strict"}},
		{"kubernetes", "Kubernetes: control CPU management policies; NFD: NodeFeatureRule",
			[]string{"cpu-manager-policy=static", "kind: NodeFeatureRule", "nodeSelector:",
				"          image: sandwich:1.2.3-4.gabc\n"}},
		{"env", "this program", []string{"SANDWICH_DECODE_PUS=0,2", "SANDWICH_RANKS=1"}},
	} {
		text := exportTest(t, c.target)
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s (%s): no %q in\n%s", c.target, c.source, w, text)
			}
		}
		if !strings.HasPrefix(text, "# ") || !strings.Contains(text, "lost") {
			t.Errorf("%s does not say what is lost:\n%s", c.target, text)
		}
	}
	_, err := export.Files(bundletest.New(t), "ollama", options(t))
	if err == nil || !strings.Contains(err.Error(), "numactl") {
		t.Errorf("%v", err)
	}
}

// TestExportedManifests checks that pods have guaranteed quality of service, which takes whole CPUs
// and equal requests and limits, and run on the nodes that the rule labels.
func TestExportedManifests(t *testing.T) {
	dec := yaml.NewDecoder(strings.NewReader(exportTest(t, "kubernetes")))
	var rule, deployment map[string]any
	if err := dec.Decode(&rule); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(&deployment); err != nil {
		t.Fatal(err)
	}
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	spec := at(deployment, "spec", "template", "spec")
	r := at(spec, "containers", 0, "resources").(map[string]any)
	for _, what := range []string{"cpu", "memory"} {
		if a, b := at(r, "requests", what), at(r, "limits", what); a != b || a == nil {
			t.Errorf("%s: request %v, limit %v", what, a, b)
		}
	}
	if at(r, "limits", "cpu") != "4" {
		t.Errorf("cpu %v", at(r, "limits", "cpu"))
	}
	want := at(rule, "spec", "rules", 0, "labels", "sandwich.dev/kind")
	if got := at(spec, "terminationGracePeriodSeconds"); got != 5+10+30+10 {
		t.Errorf("termination grace period %v", got)
	}
	if got := at(spec, "nodeSelector", "sandwich.dev/kind"); got != want || len(got.(string)) != 16 {
		t.Errorf("node label %v, the rule gives %v", got, want)
	}
}

// TestExportedUnitIsValid checks the unit with systemd-analyze, if it is installed.
func TestExportedUnitIsValid(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: install systemd")
	}
	text := strings.Replace(exportTest(t, "systemd"), "/usr/local/bin/sandwich", "/bin/true", 1)
	path := filepath.Join(t.TempDir(), "sandwich.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "verify", "--man=no", path).CombinedOutput()
	own := slices.ContainsFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return strings.Contains(line, "sandwich.service")
	})
	if own {
		t.Errorf("%v\n%s", err, out)
	} else if err != nil {
		t.Skipf("systemd-analyze does not run here: %v\n%s", err, out)
	}
}

// TestExportNamesCannotEscape checks that the names of a plan cannot end a comment or a quotation.
func TestExportNamesCannotEscape(t *testing.T) {
	b := bundletest.New(t)
	b.Plan.Name, b.Host.Host.CPUModel = "x'; rm -rf \"$HOME\" `y`", "cpu\nrm -rf /"
	for _, target := range export.Targets() {
		files, err := export.Files(b, target, options(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for line := range strings.Lines(f.Text) {
				if strings.Contains(line, "rm -rf") && !strings.HasPrefix(line, "# ") {
					t.Errorf("%s: %s", target, line)
				}
			}
		}
	}
}
