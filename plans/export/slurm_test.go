package export_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandwich/plans/export"
	"sandwich/plans/internal/bundletest"
)

// scripts is a folder with the scripts of the slurm target and with programs in place of Slurm's.
type scripts struct {
	*testing.T
	dir string
}

// newScripts writes the scripts. It skips the test where a program that they run is missing.
func newScripts(t *testing.T, programs map[string]string) scripts {
	t.Helper()
	for _, tool := range []string{"bash", "flock", "sed", "awk", "grep", "mkfifo"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	s := scripts{t, t.TempDir()}
	files, err := export.Files(bundletest.New(t), "slurm", options(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s.write(f.Name, f.Text)
	}
	for name, text := range programs {
		s.write(name, "#!/bin/bash\n"+text+"\n")
	}
	return s
}

func (s scripts) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o755); err != nil {
		s.Fatal(err)
	}
}

func (s scripts) read(name string) string {
	s.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.Fatal(err)
	}
	return string(data)
}

// run runs a script with the programs of the folder first in PATH and returns its output and exit
// code.
func (s scripts) run(env []string, name string, args ...string) (string, int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(s.dir, name)}, args...)...)
	cmd.Dir, cmd.WaitDelay = s.dir, time.Minute
	cmd.Env = append(append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH")), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestSlurmEndpoints checks the list of endpoints: only those of jobs that do not run are pruned,
// none if the controller does not answer, and wrong arguments change nothing.
func TestSlurmEndpoints(t *testing.T) {
	s := newScripts(t, map[string]string{"squeue": `[ ! -e down ] || exit 1; cat running`,
		"scancel": `echo "$*" >canceled`})
	s.write("running", "sandwich-7-0\nsandwich-7-12\nsandwich-8-N/A\n")
	for _, args := range []string{"sandwich-7-0 10.0.0.1 8080 a", "sandwich-7-1 10.0.0.2 8081",
		"sandwich-8-0 10.0.0.4 8080", "other 10.0.0.6 8080"} {
		if out, code := s.run(nil, "endpoints.sh", append([]string{"add"}, strings.Fields(args)...)...); code != 0 {
			t.Fatalf("add %s: exit code %d, %s", args, code, out)
		}
	}
	all := s.read("endpoints.yaml")
	for _, args := range []string{"", "add a 10.0.0.1", "remove ../a", "cancel", "add a 10.0.0.1 80\"80"} {
		out, code := s.run(nil, "endpoints.sh", strings.Fields(args)...)
		if code != 2 || strings.Contains(out, "unbound") || s.read("endpoints.yaml") != all {
			t.Errorf("%q: exit code %d, %s", args, code, out)
		}
	}
	s.write("down", "")
	if out, code := s.run(nil, "endpoints.sh", "prune"); code == 0 || s.read("endpoints.yaml") != all {
		t.Errorf("without a controller: exit code %d, %s\n%s", code, out, s.read("endpoints.yaml"))
	}
	if err := os.Remove(filepath.Join(s.dir, "down")); err != nil {
		t.Fatal(err)
	}
	expect := func(want string, args ...string) {
		t.Helper()
		out, code := s.run(nil, "endpoints.sh", args...)
		var names []string
		for line := range strings.Lines(s.read("endpoints.yaml")) {
			if name, ok := strings.CutPrefix(line, "  - name: "); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
		if got := strings.Join(names, " "); code != 0 || got != want {
			t.Errorf("%v: exit code %d, endpoints %s; want %s; %s", args, code, got, want, out)
		}
	}
	expect("other sandwich-7-0 sandwich-8-0", "prune")
	expect("other sandwich-8-0", "cancel", "7")
	if got := s.read("canceled"); got != "--batch --signal=TERM 7\n" {
		t.Errorf("scancel %s", got)
	}
	expect("other", "remove", "sandwich-8-0")
}

// TestSlurmServe checks the endpoint of a server: its kind for each value of --constraint and its
// address, and that a server that is stopped while it is checked is not added.
func TestSlurmServe(t *testing.T) {
	// The server runs until curl or list has opened and closed ended.
	const server = "trap 'exit 0' TERM\nread -r _ <ended || true"
	const list = `echo "$*" >>log`
	for name, c := range map[string]struct {
		features, addresses, stopped, want string
		code                               int
	}{
		"a feature":    {"kind_a", "10.0.0.7", "", "add sandwich-5-0 10.0.0.7 8080 kind_a\nremove sandwich-5-0\n", 0},
		"none":         {"(null)", "10.0.0.7", "", "add sandwich-5-0 10.0.0.7 8080 any\nremove sandwich-5-0\n", 0},
		"alternatives": {"[a|b]", "10.0.0.7", "", "add sandwich-5-0 10.0.0.7 8080 a_b_\nremove sandwich-5-0\n", 0},
		"two addresses": {"a", "127.0.1.1       STREAM node\n10.0.0.8        STREAM", "",
			"add sandwich-5-0 10.0.0.8 8080 a\nremove sandwich-5-0\n", 0},
		"loopback": {"a", "127.0.1.1       STREAM node", "", "", 1},
		"stopped":  {"a", "10.0.0.7", "yes", "remove sandwich-5-0\nremove sandwich-5-0\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			programs := map[string]string{
				"scontrol": `printf '   Features=%s DelayBoot=00:00:00\n' '` + c.features + `'`,
				"getent":   `printf '%s\n' '` + c.addresses + `'`,
				"curl":     "exit 0", "sandwich": server,
				"list": list + `; [ "$1" != add ] || : >ended`,
			}
			if c.stopped != "" {
				programs["curl"], programs["list"] = "exec 3>ended; kill -TERM $PPID", list
			}
			s := newScripts(t, programs)
			s.write("log", "")
			if out, err := exec.Command("mkfifo", filepath.Join(s.dir, "ended")).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			out, code := s.run([]string{"SLURM_JOB_ID=5", "SLURM_ARRAY_JOB_ID=", "SLURM_ARRAY_TASK_ID=",
				"ENDPOINTS=" + filepath.Join(s.dir, "list")}, "serve.sbatch", "/models/a.gguf")
			if got := s.read("log"); code != c.code || got != c.want {
				t.Errorf("exit code %d, want %d; %q, want %q; %s", code, c.code, got, c.want, out)
			}
			if c.code != 0 && !strings.Contains(out, "set ADDRESS") {
				t.Errorf("the message does not name ADDRESS: %s", out)
			}
		})
	}
}
