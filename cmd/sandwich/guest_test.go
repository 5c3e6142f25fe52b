//go:build numa

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/guest"
)

// Where things are in a guest.
const (
	guestProgram = "/sandwich"
	guestModel   = "/llama-f32.gguf"
	// guestLimit bounds one step. Guests are slow and their host may be busy: it only ends what would hang.
	guestLimit = 4 * time.Minute
)

// fourNodes has four packages with a node and four CPUs each; nodes 0 and 1 are near, 2 and 3 too.
var fourNodes = guest.Machine{Arch: "amd64", Nodes: 4, CPUsPerNode: 4, MiBPerNode: 640,
	Distances: [][]int{{10, 12, 20, 20}, {12, 10, 20, 20}, {20, 20, 10, 12}, {20, 20, 12, 10}}}

// twoClusters is one arm64 package of two clusters of four cores, each with a node.
var twoClusters = guest.Machine{Arch: "arm64", Nodes: 2, CPUsPerNode: 4, MiBPerNode: 640, Distances: [][]int{{10, 15}, {15, 10}}}

// guestRun is one guest with the sandwich of this source tree in it.
type guestRun struct {
	t       *testing.T
	results map[string]guest.Result
}

// bootGuest runs the steps in the machine, with the llama reference model, and returns what became of them. The test
// is skipped where qemu, a kernel or the reference data is missing.
func bootGuest(t *testing.T, m *guest.Machine, steps []guest.Step) *guestRun {
	t.Helper()
	tools, err := guest.Find(m)
	if errors.As(err, new(*guest.MissingError)) {
		t.Skipf("no guest was run: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(referenceFolder(t, "parity"), "models", filepath.Base(guestModel))
	folder := t.TempDir()
	var a guest.Archive
	for _, f := range []struct{ at, from string }{
		{guestModel, model},
		{guestProgram, buildFor(t, m.Arch, ".", filepath.Join(folder, "sandwich"))},
		{"/init", buildFor(t, m.Arch, "./internal/guest/init", filepath.Join(folder, "init"))},
	} {
		data, err := os.ReadFile(f.from)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(f.at, data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := &guestRun{t: t, results: map[string]guest.Result{}}
	began := time.Now()
	err = guest.Run(ctx, m, tools, &a, steps, folder, func(r guest.Result) {
		t.Logf("%s: exit code %d after %.1f s", r.Name, r.Exit, r.Seconds)
		if r.Trouble != "" {
			t.Errorf("%s: %s\n%s", r.Name, r.Trouble, r.Stderr)
		}
		g.results[r.Name] = r
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s guest under %s: %d steps in %.0f s", m.Arch, filepath.Base(tools.Kernel), len(steps), time.Since(began).Seconds())
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

// step is a run of sandwich in the guest.
func step(name, args string) guest.Step {
	return guest.Step{Name: name, Args: append([]string{guestProgram}, strings.Fields(args)...), Limit: guestLimit}
}

// result is what became of a step that had to end with this exit code.
func (g *guestRun) result(name string, code int) guest.Result {
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
	r := g.result(name, exitOK)
	if err := json.Unmarshal([]byte(r.Stdout), out); err != nil {
		g.t.Fatalf("%s: %v: %s", name, err, r.Stdout)
	}
}

// guestReference is the prompt and the exact greedy answer that generate is held to in guests.
func guestReference(t *testing.T) (prompt, greedy []int32) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(referenceFolder(t, "parity"), "ref", "llama-f32.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref sidecar
	if err := json.Unmarshal(text, &ref); err != nil {
		t.Fatal(err)
	}
	for _, s := range ref.Sequences {
		if s.Length == 33 {
			return s.Tokens, s.Refs["ref_f32_dequant"].Greedy
		}
	}
	t.Fatal("the reference has no sequence of length 33")
	return nil, nil
}

// exactly is the command line of generate whose tokens are the reference's.
func exactly(prompt []int32, flags string) string {
	return "generate --model " + guestModel + " --tokens " + joinTokens(prompt) + " -n 48 --ignore-eos --compute f32 --kv f32 --spin 0 --format json " + flags
}

func (g *guestRun) expectTokens(name string, want []int32) {
	g.t.Helper()
	var got generated
	g.decode(name, &got)
	if len(want) != 48 || !slices.Equal(got.Tokens, want) {
		g.t.Errorf("%s: tokens %v, want %v", name, got.Tokens, want)
	}
}

// probed is what the tests read of `probe --format json`.
type probed struct {
	Summary struct {
		Arch     string `json:"arch"`
		Packages int    `json:"packages"`
		Nodes    int    `json:"numa_nodes"`
		Cores    int    `json:"cores"`
		PUs      int    `json:"pus"`
	} `json:"summary"`
	Sets struct {
		Machine string
		Package []struct {
			OS   int
			CPUs string
		}
		NUMA []struct {
			OS   int
			CPUs string
		}
		Core []string
	} `json:"sets"`
	Allowed string
}

// expectNodes holds that node n has the CPUs 4n to 4n+3.
func (p *probed) expectNodes(t *testing.T, nodes int) {
	t.Helper()
	if p.Summary.Nodes != nodes || p.Summary.PUs != 4*nodes || p.Summary.Cores != 4*nodes || len(p.Sets.NUMA) != nodes {
		t.Errorf("probe found %+v with nodes %+v, want %d nodes of 4 cores", p.Summary, p.Sets.NUMA, nodes)
	}
	for i, n := range p.Sets.NUMA {
		if want := strconv.Itoa(4*i) + "-" + strconv.Itoa(4*i+3); n.OS != i || n.CPUs != want {
			t.Errorf("node %d is node %d with CPUs %s, want %s", i, n.OS, n.CPUs, want)
		}
	}
}

// TestGuestFourNodes runs sandwich on an amd64 machine of four NUMA nodes.
func TestGuestFourNodes(t *testing.T) {
	prompt, greedy := guestReference(t)
	g := bootGuest(t, &fourNodes, []guest.Step{
		step("probe", "probe --measure none --format json"),
		step("tp1", exactly(prompt, "")),
		step("tp1-threads3", exactly(prompt, "--threads 3")),
	})
	var p probed
	g.decode("probe", &p)
	p.expectNodes(t, 4)
	if p.Summary.Arch != "amd64" && p.Summary.Arch != "x86_64" {
		t.Errorf("architecture %q", p.Summary.Arch)
	}
	g.expectTokens("tp1", greedy)
	g.expectTokens("tp1-threads3", greedy)
	t.Logf("probe: %+v", p)
}

// TestGuestClusters runs sandwich on an arm64 machine of two clusters.
func TestGuestClusters(t *testing.T) {
	prompt, greedy := guestReference(t)
	g := bootGuest(t, &twoClusters, []guest.Step{
		step("probe", "probe --measure none --format json"),
		step("tp1", exactly(prompt, "")),
	})
	var p probed
	g.decode("probe", &p)
	p.expectNodes(t, 2)
	g.expectTokens("tp1", greedy)
	t.Logf("probe: %s", g.results["probe"].Stdout)
}
