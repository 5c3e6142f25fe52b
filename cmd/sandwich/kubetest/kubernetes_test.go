package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/cmd/sandwich/kubetest/cluster"
	"sandwich/cmd/sandwich/kubetest/image"
	"sandwich/cmd/sandwich/kubetest/sandbox"
)

// run is a cluster with the exported manifests of a plan.
type run struct {
	*cluster.Cluster
	dir       string
	gives     [nodes]int // the CPU that each node gives exclusively
	manifests []string
}

const nodes = 2

// TestKubernetes checks the exported manifests on a cluster of two nodes. Each node gives one CPU
// exclusively, to one replica: the first node another one than the plan was tuned on.
func TestKubernetes(t *testing.T) {
	if missing != "" {
		t.Skip(missing)
	}
	r := start(t)
	t.Run("Manifests", r.testManifests)
	if !t.Run("Pods", r.testPods) {
		return
	}
	t.Run("Rollout", r.testRollout)
	t.Run("SharedCPUs", r.testSharedCPUs)
}

// start tunes a plan on the first CPU, starts the cluster and labels its nodes.
func start(t *testing.T) *run {
	t.Helper()
	for _, path := range []string{*binaryFlag, *imageFlag, *kubeFlag, *pauseFlag, *crdsFlag} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("run make test-kubernetes, which builds what the test needs: %v", err)
		}
	}
	online := cpus(t)
	if len(online) < nodes {
		t.Skipf("%d CPUs are not enough: the nodes give different CPUs exclusively", len(online))
	}
	r := &run{dir: filepath.Join(sandbox.Dir(), "run"), gives: [nodes]int{online[1], online[0]}}
	if err := os.MkdirAll(filepath.Join(r.dir, "models"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.export(t, online[0])

	pause := filepath.Join(r.dir, "pause.tar")
	check(t, image.Write(pause, "docker.io/library/pause:test", *pauseFlag))
	kube, err := filepath.Abs(*kubeFlag)
	check(t, err)
	images, err := filepath.Abs(*imageFlag)
	check(t, err)
	r.Cluster, err = cluster.Start(kube)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.Tails())
		}
	})
	check(t, err)
	labels := map[string]string{}
	for label := range strings.FieldsSeq(r.sandwich(t, "probe", "--format", "label=kubernetes")) {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	for i, given := range r.gives {
		var reserved []string
		for _, cpu := range online {
			if cpu != given {
				reserved = append(reserved, fmt.Sprint(cpu))
			}
		}
		check(t, r.AddNode(i, strings.Join(reserved, ","), []string{pause, images}, labels))
	}
	check(t, r.StartProxy())
	return r
}

// export tunes a plan on a CPU and writes its manifests.
func (r *run) export(t *testing.T, cpu int) {
	t.Helper()
	model := filepath.Join(r.dir, "models", "tales.gguf")
	data, err := os.ReadFile(filepath.Join(root, "runtime", "demo", "tales-6m-q8_0.gguf"))
	check(t, err)
	check(t, os.WriteFile(model, data, 0o644))
	plan, manifests := filepath.Join(r.dir, "tales.plan"), filepath.Join(r.dir, "sandwich.yaml")
	// On a machine under load a short budget ends before the first comparison, and --strict refuses
	// a plan without one.
	for budget := 10 * time.Second; ; budget *= 2 {
		r.command(t, "taskset", "--cpu-list", fmt.Sprint(cpu), r.binary(t), "tune", "--model", model, "--budget",
			budget.String(), "--seq-max", "64", "--batch-max", "4", "-o", plan)
		r.sandwich(t, "plan", "export", plan, "--to", "kubernetes", "--drain-delay", "5s", "--grace", "20s", "--output",
			r.dir)
		text, err := os.ReadFile(manifests)
		check(t, err)
		r.manifests = strings.Split(string(text), "\n---\n")
		if strings.HasPrefix(r.manifests[0], "# plan tales (tuned)") {
			break
		}
		if budget > time.Minute {
			t.Skip("this machine is too busy to tune a plan")
		}
		check(t, os.RemoveAll(plan))
	}
	r.sandwich(t, "plan", "pack", plan, "-o", filepath.Join(r.dir, "tales.sandwich"))
}

func (r *run) binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(*binaryFlag)
	check(t, err)
	return path
}

// sandwich returns the output of a command of the program to test.
func (r *run) sandwich(t *testing.T, args ...string) string {
	t.Helper()
	return r.command(t, r.binary(t), args...)
}

func (r *run) command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(r.dir, "data"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// check ends the test at an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
