package export_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sandwich/plans/export"
	"sandwich/plans/internal/bundletest"
)

// endpointList is the list of endpoints that llm-d's picker reads.
type endpointList struct {
	Endpoints []struct {
		Name, Address, Port string
		Labels              map[string]string
	}
}

// endpointsScript writes endpoints.sh to a new folder and returns a function that prepares a call.
func endpointsScript(t *testing.T) (dir string, call func(arg ...string) *exec.Cmd) {
	t.Helper()
	dir = t.TempDir()
	files, err := export.Files(bundletest.New(t), "slurm", options(t))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "endpoints.sh")
	for _, f := range files {
		if f.Name == "endpoints.sh" {
			if err := os.WriteFile(script, []byte(f.Text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, func(arg ...string) *exec.Cmd { return exec.Command("bash", append([]string{script}, arg...)...) }
}

// modeOf returns the mode of a file.
func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// readEndpoints reads the list in a folder and checks that it has the mode of new files, and that
// no temporary file is left.
func readEndpoints(t *testing.T, dir string) (list endpointList) {
	t.Helper()
	path := filepath.Join(dir, "endpoints.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	usual := filepath.Join(t.TempDir(), "usual")
	if err := os.WriteFile(usual, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, want := modeOf(t, path), modeOf(t, usual); got != want {
		t.Errorf("mode %v, want %v as new files have", got, want)
	}
	for _, pattern := range []string{"endpoints.yaml.*", "endpoints.yaml.d/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name := filepath.Base(f); name != "endpoints.yaml.d" && !strings.HasSuffix(name, ".part") &&
				name != ".lock" {
				t.Errorf("%s is left", f)
			}
		}
	}
	return list
}

// TestSlurmEndpointLabels checks that endpoints of Slurm have the label of the other exports, with
// the same value if the feature is one that `probe` prints.
func TestSlurmEndpointLabels(t *testing.T) {
	dir, call := endpointsScript(t)
	for _, c := range []struct{ name, kind, want string }{{"a", "sandwich_kind_0123456789abcdef", "0123456789abcdef"},
		{"b", "epyc", "epyc"}, {"c", "", "any"}} {
		cmd := call("add", c.name, "10.0.0.1", "8080", c.kind)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		list := readEndpoints(t, dir).Endpoints
		if last := list[len(list)-1]; last.Name != c.name || last.Address != "10.0.0.1" || last.Port != "8080" ||
			last.Labels["sandwich.dev/kind"] != c.want || len(last.Labels) != 2 {
			t.Errorf("kind %q: %+v", c.kind, last)
		}
	}
	if out, err := call("add", "d", "10.0.0.1", "8080", "sandwich_kind_").CombinedOutput(); err == nil {
		t.Errorf("an empty kind is accepted: %s", out)
	}
}

// TestSlurmEndpointsWithoutLock checks that writers on a file system whose locks have no effect do
// not use the temporary files of each other.
func TestSlurmEndpointsWithoutLock(t *testing.T) {
	dir, call := endpointsScript(t)
	if err := os.WriteFile(filepath.Join(dir, "flock"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	var outputs []*strings.Builder
	for i := range 6 {
		cmd, out := call("add", fmt.Sprint("server", i%2), "10.0.0.1", fmt.Sprint(8080+i)), new(strings.Builder)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running, outputs = append(running, cmd), append(outputs, out)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("writer %d: %v: %s", i, err, outputs[i])
		}
	}
	if list := readEndpoints(t, dir).Endpoints; len(list) < 1 || len(list) > 2 {
		t.Errorf("endpoints %+v", list)
	}
}
