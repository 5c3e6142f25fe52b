//go:build numa

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/testguest"
)

// fourNodes has four packages with a node and four CPUs each; nodes 0 and 1 are near, 2 and 3 too.
var fourNodes = testguest.Machine{Arch: "amd64", Nodes: 4, CPUsPerNode: 4, MiBPerNode: 640,
	Distances: [][]int{{10, 12, 20, 20}, {12, 10, 20, 20}, {20, 20, 10, 12}, {20, 20, 12, 10}}}

// Parts of the machine.
var (
	nodeThree  = testguest.Cpuset{CPUs: "12-15", Mems: "3"}
	threeNodes = testguest.Cpuset{CPUs: "0-11", Mems: "0-2"}
	threeMems  = testguest.Cpuset{CPUs: "0-15", Mems: "0-2"}
	allNodes   = testguest.Cpuset{CPUs: "0-15", Mems: "0-3"}
)

func inCpuset(w testguest.Cpuset, s testguest.Step) testguest.Step {
	s.Cpuset = &w
	return s
}

// TestGuestFourNodes runs sandwich on an amd64 machine of four NUMA nodes. It checks the output of
// probe, tokens and logits of 1, 2 and 4 ranks, a plan that is tuned for one node and rejected
// without it, and the pages and threads of a server before and after it loses the CPUs of a node.
func TestGuestFourNodes(t *testing.T) {
	ref := guestReference(t)
	full := exactly("node-full", ref, "--tp 4 --threads 4")
	full.Fill = []int{3}
	g := bootGuest(t, &fourNodes, []testguest.Step{
		probeStep(),
		exactly("tp1", ref, "--threads 4"),
		exactly("tp2", ref, "--tp 2 --threads 4"),
		exactly("tp4", ref, "--tp 4"),
		inCpuset(nodeThree, step("tune", "tune --budget 10s --effort quick --seq-max 64 --batch-max 2 --top-k 2 "+
			"-o /tmp/node3.plan"+exactFlags)),
		exactly("tuned", ref, "--plan /tmp/node3.plan"),
		inCpuset(threeNodes, exactly("cpus-gone", ref, "--plan /tmp/node3.plan")),
		inCpuset(threeMems, exactly("node-forbidden", ref, "--plan /tmp/node3.plan")),
		shrinkingServer(t, ref),
		full,
	})
	g.expectMachine(&fourNodes)
	text := g.expectExact("tp1", ref)
	for _, name := range []string{"tp2", "tp4", "tuned", "node-full"} {
		g.expectExact(name, ref)
	}
	if said := g.results["node-full"].Stderr; !strings.Contains(said, "warning: ") ||
		!strings.Contains(said, "node 3") {
		t.Errorf("with node 3 full: %s, want a warning that names it", said)
	}
	t.Logf("node-full: %s", strings.TrimSpace(g.results["node-full"].Stderr))
	g.expectRefused("cpus-gone", exit.Foreign, "uses the PUs 12-15, but this process may use only 0-11")
	g.expectRefused("node-forbidden", exit.Foreign, "on NUMA node 3, but the cpuset of this process allows only the "+
		"nodes 0-2")
	g.checkServer(text)
}

const guestServer = "http://127.0.0.1:8080"

// The actions of shrinkingServer, by their place in the list.
const (
	askedFirst = iota
	lookedFirst
	doctored
	measured
	shrunk
	waited
	lookedAgain
	askedAgain
)

// shrinkingServer serves in four ranks, and loses the CPUs of the fourth between two requests.
func shrinkingServer(t *testing.T, ref refAnswer) testguest.Step {
	t.Helper()
	question, err := json.Marshal(map[string]any{"prompt": ref.prompt, "max_tokens": guestTokens, "temperature": 0})
	if err != nil {
		t.Fatal(err)
	}
	ask := testguest.Action{Post: &testguest.Post{URL: guestServer + "/v1/completions", Body: string(question)}}
	s := inCpuset(allNodes, step("serve", "serve --tp 4 --ctx 256 --parallel 2"+exactFlags))
	s.While = []testguest.Action{
		askedFirst:  ask,
		lookedFirst: {Look: true},
		doctored:    {Run: []string{guestProgram, "doctor", "--format", "json"}},
		measured:    {Post: &testguest.Post{URL: guestServer + "/metrics"}},
		shrunk:      {Cpuset: &testguest.Cpuset{CPUs: "0-11", Mems: "0-3"}},
		waited:      {Wait: 3 * time.Second},
		lookedAgain: {Look: true},
		askedAgain:  ask,
	}
	return s
}

// rankWeightsKiB is a quarter of the matrices of the model: per layer 256 by 256 five times and 128
// by 256 twice, and the output head of 320 by 256, all float32.
const rankWeightsKiB = (2*(5*256*256+2*128*256) + 320*256) * 4 / 4 >> 10

// checkServer checks the results of shrinkingServer.
func (g *guestRun) checkServer(text string) {
	t := g.t
	t.Helper()
	r := g.result("serve", exit.OK)
	if len(r.Seen) <= askedAgain {
		t.Fatalf("the server was left after %d actions: %s", len(r.Seen), r.Stderr)
	}
	for _, i := range []int{askedFirst, askedAgain} {
		if body := r.Seen[i].Body; r.Seen[i].Status != 200 || !strings.Contains(body, jsonText(t, text)) {
			t.Errorf("request %d was answered %d %s, want the text %q", i, r.Seen[i].Status, body, text)
		}
	}
	expectPinned(t, r.Seen[lookedFirst].Process, 16)
	expectPinned(t, r.Seen[lookedAgain].Process, 12)
	kib := boundPages(t, r.Seen[lookedFirst].Process)
	for node := range 4 {
		if on := kib[node]; len(on) != 1 || on[node] < rankWeightsKiB {
			t.Errorf("what is bound to node %d lies by node in KiB: %v, want all of it there and more than the "+
				"%d of its weights", node, on, rankWeightsKiB)
		}
	}
	t.Logf("KiB bound to each node, by the node they are on: %v", kib)
	if doctor := r.Seen[doctored]; !strings.Contains(doctor.Body, "0.0 % remote") {
		t.Errorf("doctor (exit code %d) says nothing of placement: %s", doctor.Status, doctor.Body)
	}
	for _, want := range []string{`remote_fraction{rank="3",what="weights"} 0`, `remote_fraction{rank="3",what="kv"} 0`,
		`moved_bytes{rank="3",what="weights"} 0`, `moved_bytes{rank="3",what="kv"} 0`, "fallbacks_total 0"} {
		if !strings.Contains(r.Seen[measured].Body, "sandwich_memory_"+want) {
			t.Errorf("/metrics has no %s: %s", want, r.Seen[measured].Body)
		}
	}
	if !strings.Contains(r.Stderr, "PU 12, 13, 14, 15 of the plan became unavailable") {
		t.Errorf("the server said nothing of PUs that it lost: %s", r.Stderr)
	}
}
