package slurm

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jobs is a cluster with the exported scripts.
type jobs struct {
	*cluster
	models []string
}

// export starts a cluster on this machine and writes the scripts and small models for it.
func export(t *testing.T) *jobs {
	t.Helper()
	j := &jobs{cluster: startCluster(t)}
	j.env = append(j.env, "ADDRESS=127.0.0.2")
	j.prepare("llama-tiny", "qwen3-tiny", "gemma2-tiny")
	return j
}

// tuneFlags make a run short.
const tuneFlags = "--threads 1 --seq-max 8 --batch-max 1"

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// root returns the root of the source tree.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// prepare copies sandwich to the folder of the jobs and writes the scripts and models there.
func (j *jobs) prepare(presets ...string) {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(root(j.t), "bin", "sandwich"))
	if err != nil {
		j.t.Fatalf("run make build: %v", err)
	}
	j.write("sandwich", data, 0o755)
	binary := j.path("sandwich")
	j.env = append(j.env, "SANDWICH="+binary, "BUDGET=10s", "TUNE_FLAGS="+tuneFlags)
	j.run(binary, "plan", "export", filepath.Join(root(j.t), "plans", "testdata", "v2", "tuned.plan"), "--to", "slurm",
		"--drain-delay", "15s", "--output", j.dir)
	for _, preset := range presets {
		model := j.path(preset + ".gguf")
		j.run(binary, "model", "synth", "--preset", preset, "-o", model)
		j.models = append(j.models, model)
	}
}

// tune submits the array that tunes models for a kind and returns its number.
func (j *jobs) tune(kind string, models ...string) string {
	j.t.Helper()
	args := []string{"--parsable", "--constraint=" + kind, fmt.Sprintf("--array=0-%d", len(models)-1)}
	if profile := j.path("host-" + kind + ".yaml"); isFile(profile) {
		args = append(args, "--export=ALL,TUNE_FLAGS="+tuneFlags+" --effort quick --top-k 1 --profile "+profile)
	}
	return j.run("sbatch", append(append(args, "tune.sbatch"), models...)...)
}

// log returns what a task of an array wrote.
func (j *jobs) log(script, job string, task int) string {
	return j.read(fmt.Sprintf("%s-%s_%d.log", script, job, task))
}

// TestTuneArray checks that each model is tuned once for each kind of node, that a second array
// tunes nothing, and that a killed task continues.
func TestTuneArray(t *testing.T) {
	j := export(t)
	j.expectTunedOnce(j.models[0], j.models[1])
	j.env = append(j.env, "BUDGET=30s")
	j.expectContinued(kinds[0], j.models[2])
}

// expectTunedOnce checks that arrays for all kinds tune models, and that a second set of arrays
// tunes nothing.
func (j *jobs) expectTunedOnce(models ...string) {
	t := j.t
	t.Helper()
	for run, want := range []string{"pushed as", "nothing is tuned"} {
		var numbers []string
		for _, kind := range kinds {
			numbers = append(numbers, j.tune(kind, models...))
		}
		j.awaitJobs()
		for i, job := range numbers {
			for task := range models {
				text := j.log("tune", job, task)
				if !strings.Contains(text, want) {
					t.Errorf("run %d, %s, task %d: %s", run+1, kinds[i], task, text)
				}
			}
			if n := j.plans(kinds[i]); n != len(models) {
				t.Errorf("%d plans for %d models and %s", n, len(models), kinds[i])
			}
		}
	}
}

// expectContinued kills the task that tunes a model for a kind when it has measured something, and
// checks that a second task continues.
func (j *jobs) expectContinued(kind, model string) {
	t := j.t
	t.Helper()
	plans := j.plans(kind)
	job := j.tune(kind, model)
	name := strings.TrimSuffix(filepath.Base(model), ".gguf")
	journal := fmt.Sprintf("state/%s/%s/%[2]s.plan.journal", kind, name)
	j.await("the journal has a measurement", func() bool { return strings.Count(j.read(journal), "\n") > 1 })
	j.run("scancel", job)
	j.awaitJobs()
	if n := j.plans(kind); n != plans {
		t.Fatalf("the task ended before it was killed: %s", j.log("tune", job, 0))
	}
	before := j.read(journal)
	job = j.tune(kind, model)
	j.await("the journal grows", func() bool { text := j.read(journal); return len(text) > len(before) || text == "" })
	if text := j.read(journal); text != "" && !strings.HasPrefix(text, before) {
		t.Errorf("the killed task starts over")
	}
	j.awaitJobs()
	text := j.log("tune", job, 0)
	if n := j.plans(kind); n != plans+1 || strings.Contains(text, "starting over") ||
		!strings.Contains(text, "pushed as") {
		t.Errorf("%d plans, the killed task does not continue: %s", n, text)
	}
	t.Logf("%s: a task was killed with %d journal lines and continued", kind, strings.Count(before, "\n"))
}

// plans returns the number of plans for a kind.
func (j *jobs) plans(kind string) int {
	j.t.Helper()
	list, err := filepath.Glob(j.path("plans/" + kind + "/*.sandwich"))
	if err != nil {
		j.t.Fatal(err)
	}
	return len(list)
}

// TestServeArray checks that servers become endpoints when they serve, and that canceling removes
// them from the list first, while they still accept requests.
func TestServeArray(t *testing.T) {
	j := export(t)
	port := freePort(t)
	if next := freePort(t); next != port+1 {
		t.Skipf("ports %d and %d are not both free", port, port+1)
	}
	j.env = append(j.env, fmt.Sprint("PORT=", port))
	job := j.run("sbatch", "--parsable", "--constraint="+kinds[1], "--array=0-1", "serve.sbatch", j.models[0],
		"--threads", "1")
	names := func() int { return strings.Count(j.read("endpoints.yaml"), "- name: sandwich-"+job) }
	j.await("both servers are endpoints", func() bool { return names() == 2 })
	for task := range 2 {
		want := fmt.Sprintf("address: \"127.0.0.2\"\n    port: \"%d\"", port+task)
		if text := j.read("endpoints.yaml"); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
		ask(t, port+task)
	}
	j.run("./endpoints.sh", "cancel", job)
	if n := names(); n != 0 {
		t.Errorf("%d endpoints are left after cancel: %s", n, j.read("endpoints.yaml"))
	}
	ask(t, port) // during the drain delay
	j.awaitJobs()
	for task := range 2 {
		if text := j.log("serve", job, task); !strings.Contains(text, "stopped") {
			t.Errorf("task %d did not end well: %s", task, text)
		}
	}

	// scancel alone removes them, too.
	job = j.run("sbatch", "--parsable", "--constraint="+kinds[2], "--array=0", "serve.sbatch", j.models[0],
		"--threads", "1")
	j.await("the server is an endpoint", func() bool { return names() == 1 })
	j.run("scancel", job)
	j.awaitJobs()
	if n := names(); n != 0 {
		t.Errorf("%d endpoints are left after scancel: %s", n, j.read("endpoints.yaml"))
	}
}

// ask sends a request to a server.
func ask(t *testing.T, port int) {
	t.Helper()
	res, err := http.Post(fmt.Sprintf("http://127.0.0.2:%d/v1/completions", port), "application/json",
		strings.NewReader(`{"prompt":"The fox","max_tokens":2}`))
	if err != nil {
		t.Error(err)
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("port %d: status %d", port, res.StatusCode)
	}
}
