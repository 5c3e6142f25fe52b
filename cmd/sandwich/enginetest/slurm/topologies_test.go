package slurm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGuests tunes and serves on nodes that are guests of different topologies. It checks that each
// kind is tuned once with a plan for its host, that a killed task continues, that servers which
// share one index take the plan of their kind, and that a kind without a plan serves untuned, or
// not at all with --strict.
func TestGuests(t *testing.T) {
	g := startGuests(t)
	g.prepare("llama-tiny", "qwen3-tiny")
	// The runs end when all is compared, long before the budget, however slow the guests are.
	g.env = append(g.env, "BUDGET=10m")
	labels := g.describe()
	g.expectTunedOnce(g.models[0])
	g.expectContinued(kinds[2], g.models[1])
	plans := g.expectPlans(labels)
	index := g.index(plans)
	for i, kind := range kinds {
		g.serve(kind, index, plans[i])
	}
	g.running[0].end() // three guests at a time
	g.start(len(kinds))
	g.awaitGuest(len(kinds))
	g.serveWithoutPlan(index, plans)
}

// describe returns the features by which each node describes itself, and writes the profile that it
// tunes with. tune itself would also measure the structure, which is noise in guests.
func (g *guests) describe() (labels []string) {
	g.t.Helper()
	var numbers []string
	for _, kind := range kinds {
		numbers = append(numbers, g.submit(kind, "--output=label-%j.log",
			"--wrap=$SANDWICH probe --measure quick --format label=slurm -o host-"+kind+".yaml"))
	}
	g.awaitJobs()
	for i, job := range numbers {
		label := strings.TrimSpace(g.read("label-" + job + ".log"))
		label = label[strings.LastIndexByte(label, '\n')+1:]
		m := machines[i]
		for _, want := range []string{fmt.Sprint("sandwich_pus_", m.Nodes*m.CPUsPerNode),
			fmt.Sprint("sandwich_nodes_", m.Nodes)} {
			if !slices.Contains(strings.Split(label, ","), want) {
				g.t.Fatalf("%s has no feature %s: %s", kinds[i], want, label)
			}
		}
		g.t.Logf("%s: %s", kinds[i], label)
		labels = append(labels, label)
	}
	return labels
}

// plan is a plan as `fleet report` lists it.
type plan struct {
	Kind, CPU, Model, Plan, Digest, State string
	PUs                                   int
	Usable                                string `json:"available_pus"`
	file                                  string
}

// expectPlans returns the plan of the first model for each kind, and checks that it was tuned for
// the host that the node describes.
func (g *guests) expectPlans(labels []string) (plans []plan) {
	t := g.t
	t.Helper()
	var seen []string
	for i, kind := range kinds {
		for _, p := range g.report(g.path("plans/" + kind)) {
			if !strings.HasPrefix(p.Model, "llama-tiny") {
				continue
			}
			p.file = g.path("plans/" + kind + "/" + p.Plan)
			t.Logf("%s: kind %s, %s, PUs %s, plan %s", kind, p.Kind, p.CPU, p.Usable, p.Digest)
			if !strings.Contains(labels[i], "sandwich_kind_"+p.Kind+",") || p.State == "untuned" {
				t.Errorf("%s has a plan for another kind of host, or an untuned one: %+v", kind, p)
			}
			if want := fmt.Sprintf("0-%d", machines[i].Nodes*machines[i].CPUsPerNode-1); p.Usable != want {
				t.Errorf("the plan of %s was tuned with the PUs %s, want %s", kind, p.Usable, want)
			}
			if slices.Contains(seen, p.Kind) {
				t.Errorf("two plans are for the kind of host %s", p.Kind)
			}
			seen, plans = append(seen, p.Kind), append(plans, p)
		}
	}
	if len(plans) != len(kinds) {
		t.Fatalf("%d plans for %d kinds", len(plans), len(kinds))
	}
	return plans
}

// report returns the plans of a location.
func (g *guests) report(location string) (plans []plan) {
	g.t.Helper()
	out, err := exec.Command(g.path("sandwich"), "fleet", "report", location, "--format", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &plans)
	}
	if err != nil {
		g.t.Fatalf("fleet report %s: %v: %s", location, err, out)
	}
	return plans
}

// index pushes the plans to one place and returns the location of their index.
func (g *guests) index(plans []plan) string {
	g.t.Helper()
	layout := "oci:" + g.path("index")
	for _, p := range plans {
		g.run(g.path("sandwich"), "plan", "push", p.file, layout)
	}
	g.t.Log(g.run(g.path("sandwich"), "plan", "index", layout))
	if n := len(g.report(layout + ":index")); n != len(plans) {
		g.t.Fatalf("the index has %d plans, want %d", n, len(plans))
	}
	return layout
}

// exportPlan writes the scripts for a plan and returns the one that serves.
func (g *guests) exportPlan(p plan) string {
	g.t.Helper()
	folder := g.path("jobs-" + p.Kind)
	g.run(g.path("sandwich"), "plan", "export", p.file, "--to", "slurm", "--drain-delay", "3s", "--output", folder)
	return filepath.Join(folder, "serve.sbatch")
}

// submitServer submits a server that takes its plan from the index, and returns its job.
func (g *guests) submitServer(kind, index, script string, flags ...string) string {
	g.t.Helper()
	args := append([]string{"--array=0", "--export=ALL,PLANS=" + index, script, g.models[0]}, flags...)
	return g.submit(kind, args...)
}

// serve starts a server for a kind with the scripts of its plan, and checks that its endpoint
// answers under this plan.
func (g *guests) serve(kind, index string, p plan) {
	t := g.t
	t.Helper()
	job := g.submitServer(kind, index, g.exportPlan(p))
	info := g.awaitEndpoint(kind, job)
	if info["tuned"] != "yes" || info["plan"] != p.Digest {
		t.Errorf("%s serves with the plan %s (tuned: %s), want %s: %s", kind, info["plan"], info["tuned"], p.Digest,
			g.log("serve", job, 0))
	}
	t.Logf("%s: serves with its plan %.15s, topology %.15s", kind, info["plan"], info["topology"])
	g.stop(job)
}

// stop cancels a server and checks that it left the list.
func (g *guests) stop(job string) {
	g.t.Helper()
	g.run("./endpoints.sh", "cancel", job)
	g.awaitJobs()
	if text := g.log("serve", job, 0); !strings.Contains(text, "stopped") {
		g.t.Errorf("the server of job %s did not end well: %s", job, text)
	}
	if text := g.read("endpoints.yaml"); strings.Contains(text, "sandwich-"+job) {
		g.t.Errorf("job %s is still an endpoint: %s", job, text)
	}
}

// endpoint matches an endpoint of a job in endpoints.yaml: address, port and kind.
const endpoint = `- name: sandwich-%s-0\n +address: "(.*)"\n +port: "(.*)"\n +labels: .*sandwich.dev/kind: "(.*)"`

// infoLabel matches a label of a metric.
var infoLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)

// awaitEndpoint returns the labels of sandwich_info of the server of a job, when it is an endpoint
// and has answered a request.
func (g *guests) awaitEndpoint(kind, job string) map[string]string {
	t := g.t
	t.Helper()
	pattern := regexp.MustCompile(fmt.Sprintf(endpoint, job))
	var found []string
	g.await("job "+job+" is an endpoint", func() bool {
		found = pattern.FindStringSubmatch(g.read("endpoints.yaml"))
		if found == nil && g.run("squeue", "-h") == "" {
			t.Fatalf("the server of job %s ended: %s", job, g.log("serve", job, 0))
		}
		return found != nil
	})
	if found[3] != strings.TrimPrefix(kind, "sandwich_kind_") {
		t.Errorf("the endpoint of %s has the kind %s", kind, found[3])
	}
	url := "http://" + found[1] + ":" + found[2]
	answer(t, http.MethodPost, url+"/v1/completions", `{"prompt":"The fox","max_tokens":2}`)
	info := map[string]string{}
	for line := range strings.Lines(answer(t, http.MethodGet, url+"/metrics", "")) {
		if strings.HasPrefix(line, "sandwich_info{") {
			for _, label := range infoLabel.FindAllStringSubmatch(line, -1) {
				info[label[1]] = label[2]
			}
		}
	}
	return info
}

// answer returns the body of the answer to a request.
func answer(t *testing.T, method, url, body string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", url, res.StatusCode, err, text)
	}
	return string(text)
}

// serveWithoutPlan checks that the node without a plan serves untuned and says why, and that
// --strict refuses that.
func (g *guests) serveWithoutPlan(index string, plans []plan) {
	t := g.t
	t.Helper()
	script := g.exportPlan(plans[0])
	job := g.submitServer(fourth, index, script)
	info := g.awaitEndpoint(fourth, job)
	text := g.log("serve", job, 0)
	const why = "has no plan for this host and model; the nearest one"
	if info["tuned"] != "no" || !strings.Contains(text, why) || !strings.Contains(text, "topology: 2 PUs") {
		t.Errorf("%s serves tuned=%s and says: %s", fourth, info["tuned"], text)
	}
	g.stop(job)
	t.Logf("%s:\n%s", fourth, text)
	job = g.submitServer(fourth, index, script, "--strict")
	g.awaitJobs()
	text = g.log("serve", job, 0)
	list := g.read("endpoints.yaml")
	const refused = "--strict: no tuned plan fits this host and model"
	if !strings.Contains(text, why) || !strings.Contains(text, refused) || strings.Contains(list, "name:") {
		t.Errorf("with --strict: %s\n%s", text, list)
	}
	t.Logf("%s with --strict:\n%s", fourth, text)
}
