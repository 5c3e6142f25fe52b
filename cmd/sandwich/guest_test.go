//go:build numa

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/serve"
	"sandwich/cmd/sandwich/internal/testguest"
	"sandwich/profiles"
	"sandwich/runtime/refdata"
	"sandwich/topotree"
)

// Where things are in a guest.
const (
	guestProgram = "/sandwich"
	guestModel   = "/llama-f32.gguf"
	// guestLimit bounds one step. Guests are slow and their host may be busy: it only ends what
	// would hang.
	guestLimit = 4 * time.Minute
	// guestTokens counts the tokens to generate; each takes about a second.
	guestTokens = 8
)

// guestRun is one guest with the sandwich of this source tree in it.
type guestRun struct {
	t       *testing.T
	results map[string]testguest.Result
}

// bootGuest runs the steps in the machine, with the llama reference model, and returns their
// results. It skips the test if qemu, a kernel or the reference data is missing.
func bootGuest(t *testing.T, m *testguest.Machine, steps []testguest.Step) *guestRun {
	t.Helper()
	tools, err := testguest.Find(m)
	if errors.As(err, new(*testguest.MissingError)) {
		t.Skipf("no guest was run: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	model := refdata.Path(t, "parity/models/"+filepath.Base(guestModel))
	folder := t.TempDir()
	var a testguest.Archive
	for _, f := range []struct{ at, from string }{
		{guestModel, model},
		{guestProgram, buildFor(t, m.Arch, ".", filepath.Join(folder, "sandwich"))},
		{"/init", buildFor(t, m.Arch, "./internal/testguest/init", filepath.Join(folder, "init"))},
	} {
		data, err := os.ReadFile(f.from)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(f.at, data)
	}
	ctx := t.Context()
	if end, ok := t.Deadline(); ok { // the machine must not outlive the test
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-10*time.Second))
		defer cancel()
	}
	g := &guestRun{t: t, results: map[string]testguest.Result{}}
	began := time.Now()
	busy, err := testguest.Run(ctx, m, tools, &a, steps, folder, func(r testguest.Result) {
		t.Logf("%s: exit code %d after %.1f s", r.Name, r.Exit, r.Seconds)
		if r.Err != "" {
			t.Errorf("%s: %s\n%s", r.Name, r.Err, r.Stderr)
		}
		g.results[r.Name] = r
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s guest under %s: %d steps in %.0f s, %.0f s of CPU time", m.Arch, filepath.Base(tools.Kernel), len(steps),
		time.Since(began).Seconds(), busy.Seconds())
	return g
}

// buildFor builds a command of this module for linux and the architecture.
func buildFor(t *testing.T, arch, pkg, to string) string {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s for %s: %v: %s", pkg, arch, err, out)
	}
	return to
}

// step returns a run of sandwich in the guest.
func step(name, args string) testguest.Step {
	return testguest.Step{Name: name, Args: append([]string{guestProgram}, strings.Fields(args)...), Limit: guestLimit}
}

// result returns the output of a step and checks its exit code.
func (g *guestRun) result(name string, code int) testguest.Result {
	g.t.Helper()
	r, ok := g.results[name]
	if !ok || r.Exit != code {
		g.t.Fatalf("%s: exit code %d, want %d: %s%s", name, r.Exit, code, r.Stdout, r.Stderr)
	}
	return r
}

// decode reads the JSON that a step printed.
func (g *guestRun) decode(name string, out any) {
	g.t.Helper()
	r := g.result(name, exit.OK)
	if err := json.Unmarshal([]byte(r.Stdout), out); err != nil {
		g.t.Fatalf("%s: %v: %s", name, err, r.Stdout)
	}
}

// refAnswer holds the reference answer to one prompt.
type refAnswer struct {
	prompt, greedy []int32
	vocab, stored  int
	logits         string // file
}

// guestReference holds the exact greedy tokens and logits that generate must reproduce in guests.
func guestReference(t *testing.T) refAnswer {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "parity/ref/llama-f32.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref sidecar
	if err := json.Unmarshal(text, &ref); err != nil {
		t.Fatal(err)
	}
	for _, s := range ref.Sequences {
		if want := s.Refs["ref_f32_dequant"]; s.Length == 33 && len(want.Greedy) >= guestTokens {
			return refAnswer{prompt: s.Tokens, greedy: want.Greedy[:guestTokens], vocab: ref.NVocab, stored: s.Shape[0],
				logits: refdata.Path(t, "parity/"+want.File)}
		}
	}
	t.Fatal("the reference has no sequence of length 33")
	return refAnswer{}
}

// exactFlags make the arithmetic the reference's, and let no worker spin: there are more of them
// than the host has cores.
const exactFlags = " --model " + guestModel + " --compute f32 --kv f32 --spin 0 "

// exactly returns a step that generates the reference tokens.
func exactly(name string, a refAnswer, flags string) testguest.Step {
	s := step(name, fmt.Sprintf("generate %s --tokens %s -n %d --ignore-eos --format json --logits "+
		"/tmp/%s.logits %s", exactFlags, joinTokens(a.prompt), guestTokens, name, flags))
	s.Read = []string{"/tmp/" + name + ".logits"}
	return s
}

// expectExact checks tokens and logits of a step made by exactly, and returns its text.
func (g *guestRun) expectExact(name string, a refAnswer) string {
	g.t.Helper()
	var got serve.Generated
	g.decode(name, &got)
	if !slices.Equal(got.Tokens, a.greedy) {
		g.t.Errorf("%s: tokens %v, want %v", name, got.Tokens, a.greedy)
	}
	file := filepath.Join(g.t.TempDir(), name)
	if err := os.WriteFile(file, g.results[name].Files["/tmp/"+name+".logits"], 0o600); err != nil {
		g.t.Fatal(err)
	}
	compareLogits(g.t, file, a.logits, a.vocab, len(a.prompt), a.stored)
	return got.Text
}

// expectRefused checks that a step ended with this exit code, with one line on stderr that names
// the cause, and with nothing on stdout.
func (g *guestRun) expectRefused(name string, code int, words string) {
	g.t.Helper()
	r := g.result(name, code)
	if r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, words) {
		g.t.Errorf("%s: said %q%q, want one line with %q", name, r.Stdout, r.Stderr, words)
	}
	g.t.Logf("%s: %s", name, strings.TrimSpace(r.Stderr))
}

// probeStep returns a step that probes the machine; expectMachine reads it.
func probeStep() testguest.Step {
	s := step("probe", "probe --measure none --format json -o /tmp/host.yaml")
	s.Read = []string{"/tmp/host.yaml"}
	return s
}

// expectMachine checks that probe found the nodes of m with their CPUs, memory and distances, in
// JSON and in host.yaml.
func (g *guestRun) expectMachine(m *testguest.Machine) *profiles.Profile {
	g.t.Helper()
	var got probe
	g.decode("probe", &got)
	if s := got.Summary; s.NUMANodes != m.Nodes || s.PUs != m.Nodes*m.CPUsPerNode || s.Cores != s.PUs ||
		len(got.Sets.NUMA) != m.Nodes {
		g.t.Errorf("probe found %+v with the nodes %+v, want %d nodes of %d cores", s, got.Sets.NUMA, m.Nodes,
			m.CPUsPerNode)
	}
	host, err := profiles.Parse(g.results["probe"].Files["/tmp/host.yaml"])
	if err != nil {
		g.t.Fatal(err)
	}
	for i, n := range got.Sets.NUMA {
		want := topotree.CPURange(i*m.CPUsPerNode, (i+1)*m.CPUsPerNode-1)
		if n.OS != i || n.CPUs != want.String() {
			g.t.Errorf("node %d is %+v, want the CPUs %s", i, n, want)
		}
		// the kernel keeps some
		if mib := host.Machine.Node(i).Bytes >> 20; mib < int64(m.MiBPerNode)/2 || mib > int64(m.MiBPerNode) {
			g.t.Errorf("node %d has %d MiB, want not much less than %d", i, mib, m.MiBPerNode)
		}
	}
	if d := host.Machine.Distances; d == nil || !slices.EqualFunc(d.Matrix, m.Distances, slices.Equal) {
		g.t.Errorf("distances %+v, want %v", d, m.Distances)
	}
	g.t.Logf("probe: %+v, nodes %+v, instruction sets %v", got.Summary, got.Sets.NUMA, host.Host.ISA)
	return host
}

// probe holds the fields read from `probe --format json`.
type probe struct {
	Summary struct {
		Packages  int
		NUMANodes int `json:"numa_nodes"`
		Cores     int
		PUs       int
	}
	Sets struct {
		NUMA []struct {
			OS   int
			CPUs string
		}
		Cluster []string
	}
}
