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

// export writes the scripts and copies of the embedded model.
func export(t *testing.T) *jobs {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "bin", "sandwich")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("run make build: %v", err)
	}
	j := &jobs{cluster: startCluster(t)}
	j.env = append(j.env, "SANDWICH="+binary, "PLANS="+j.path("plans"), "ENDPOINTS="+j.path("endpoints.sh"),
		"BUDGET=10s", "TUNE_FLAGS=--threads 1 --seq-max 8 --batch-max 1", "ADDRESS=127.0.0.2")
	j.run(binary, "plan", "export", filepath.Join(root, "plans", "testdata", "v2", "tuned.plan"), "--to", "slurm",
		"--drain-delay", "3s", "--output", j.dir)
	model, err := os.ReadFile(filepath.Join(root, "runtime", "demo", "tales-6m-q8_0.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		name := fmt.Sprintf("m%d.gguf", i)
		j.write(name, model, 0o644)
		j.models = append(j.models, j.path(name))
	}
	return j
}

// tune submits the array that tunes models for a kind and returns its number.
func (j *jobs) tune(kind string, models ...string) string {
	j.t.Helper()
	args := []string{"--parsable", "--constraint=" + kind, fmt.Sprintf("--array=0-%d", len(models)-1), "tune.sbatch"}
	return j.run("sbatch", append(args, models...)...)
}

// log returns what a task of an array wrote.
func (j *jobs) log(script, job string, task int) string {
	return j.read(fmt.Sprintf("%s-%s_%d.log", script, job, task))
}

// TestTuneArray checks that each model is tuned once for each kind of node, that a second array
// tunes nothing, and that a killed task continues.
func TestTuneArray(t *testing.T) {
	j := export(t)
	submit := func() (numbers []string) {
		for _, kind := range kinds {
			numbers = append(numbers, j.tune(kind, j.models[0], j.models[1]))
		}
		j.awaitJobs()
		return numbers
	}
	for run, want := range []string{"tuned ", "nothing to tune"} {
		for i, job := range submit() {
			for task := range 2 {
				if text := j.log("tune", job, task); !strings.Contains(text, want) {
					t.Errorf("run %d, %s, task %d: %s", run+1, kinds[i], task, text)
				}
				plan := fmt.Sprintf("plans/%s/m%d.sandwich", kinds[i], task)
				if _, err := os.Stat(j.path(plan)); err != nil {
					t.Error(err)
				}
			}
		}
	}

	j.env = append(j.env, "BUDGET=30s")
	job := j.tune(kinds[0], j.models[2])
	journal := "plans/" + kinds[0] + "/state/m2.sandwich.journal"
	j.await("the journal has a measurement", func() bool { return strings.Count(j.read(journal), "\n") > 1 })
	j.run("scancel", job)
	j.awaitJobs()
	plan := j.path("plans/" + kinds[0] + "/m2.sandwich")
	if _, err := os.Stat(plan); err == nil {
		t.Fatalf("the task ended before it was killed: %s", j.log("tune", job, 0))
	}
	job = j.tune(kinds[0], j.models[2])
	j.awaitJobs()
	if text := j.log("tune", job, 0); !strings.Contains(text, "continuing from") || !strings.Contains(text, "tuned ") {
		t.Errorf("the killed task does not continue: %s", text)
	}
	if _, err := os.Stat(plan); err != nil {
		t.Error(err)
	}
}

// TestServeArray checks that servers become endpoints when they serve, and that canceling removes
// them from the list first, while they still accept requests.
func TestServeArray(t *testing.T) {
	j := export(t)
	port := freePort(t)
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
