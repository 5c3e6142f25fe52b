package export_test

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sandwich/plans/evidence"
	"sandwich/plans/export"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
	"sandwich/topotree"
)

// TestEngineExports checks that the files of the targets that scale out have the figures of the
// plan, which uses the PUs 0-3, and of the options.
func TestEngineExports(t *testing.T) {
	for target, want := range map[string]map[string][]string{
		"haproxy": {"haproxy.cfg": {"inter 500ms fall 2 ", "maxconn 72 ", "server replica1 10.0.0.1:8080",
			"server replica2 10.0.0.2:8081", "--drain-delay 10s --grace 30s", "balance hash var(txn.session)",
			"hash-balance-factor 200", "option httpchk GET /health", "retry-on conn-failure empty-response 503",
			"req.hdr(x-claude-code-session-id)", "http-reuse safe",
			"timeout check 10s"}},
		"slurm": {"tune.sbatch": {"#SBATCH --exclusive", "#SBATCH --requeue"},
			"serve.sbatch": {"#SBATCH --cpus-per-task=4", "#SBATCH --mem=1536M", "--hint=nomultithread",
				"#SBATCH --signal=B:TERM@55", "drain_delay=10s grace=30s"},
			"endpoints.sh": {"scancel --batch --signal=TERM"}},
		"kubernetes": {"sandwich.yaml": {`"--drain-delay", "10s", "--grace", "30s"`, "memory: 1536Mi"}},
		"llm-d": {"epp.yaml": {"peakPrefillThroughput: 1"}, "endpoints.yaml": {`address: "10.0.0.2"`, `port: "8081"`},
			"envoy.yaml": {"x-gateway-destination-endpoint"}},
	} {
		files, err := export.Files(bundletest.New(t), target, options(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			words, known := want[f.Name]
			delete(want, f.Name)
			if !known || strings.Contains(f.Text, "%!") {
				t.Errorf("%s has a file %s:\n%s", target, f.Name, f.Text)
			}
			for _, w := range words {
				if !strings.Contains(f.Text, w) {
					t.Errorf("%s, %s: no %q in\n%s", target, f.Name, w, f.Text)
				}
			}
		}
		if len(want) != 0 {
			t.Errorf("%s lacks files: %v", target, want)
		}
	}
}

// TestSlurmHint checks that a job whose plan uses hardware threads of one core may get them.
func TestSlurmHint(t *testing.T) {
	for allowed, want := range map[string]string{"0-3": "multithread", "0,2": "nomultithread", "1": "nomultithread",
		"0,2-3": "multithread"} {
		set, err := topotree.ParseCPUSet(allowed)
		if err != nil {
			t.Fatal(err)
		}
		b := bundletest.New(t)
		b.Host = *plantest.Rehost(t, &b.Host, func(d *topotree.Description, _ *profiles.Identity) {
			all := topotree.CPURange(0, 3)
			d.Online, d.Allowed = all, set
			d.Levels = []topotree.LevelData{{Kind: topotree.KindPackage, Sets: []topotree.CPUSet{all}},
				{Kind: topotree.KindCore, Sets: []topotree.CPUSet{topotree.NewCPUSet(0, 1), topotree.NewCPUSet(2, 3)}}}
		})
		files, err := export.Files(b, "slurm", options(t))
		if err != nil {
			t.Fatal(err)
		}
		if text := files[1].Text; !strings.Contains(text, "#SBATCH --hint="+want+"\n") {
			t.Errorf("with the PUs %s: no --hint=%s in\n%s", allowed, want, text)
		}
	}
}

// TestExportsNeedReplicas checks that load balancers are not configured without servers, and llm-d
// not with names.
func TestExportsNeedReplicas(t *testing.T) {
	for _, target := range []string{"haproxy", "llm-d"} {
		o := options(t)
		o.Replicas = nil
		if _, err := export.Files(bundletest.New(t), target, o); err == nil ||
			!strings.Contains(err.Error(), "--replicas 10.0.0.1:8080") {
			t.Errorf("%s: %v", target, err)
		}
	}
	o := options(t)
	o.Replicas[1].Host = "node-2"
	if _, err := export.Files(bundletest.New(t), "llm-d", o); err == nil ||
		!strings.Contains(err.Error(), "replace node-2:8081") {
		t.Errorf("a name: %v", err)
	}
}

// TestPrefillRate checks that the endpoint picker gets the largest median of the plan's arm.
func TestPrefillRate(t *testing.T) {
	b := bundletest.New(t)
	b.Evidence.Finalists = []evidence.Arm{
		{Name: "prefill, default", Test: "pp512", Samples: []float64{900}},
		{Name: "prefill, winner: PUs 0-3", Test: "pp128", Samples: []float64{100, 300, 310}},
		{Name: "prefill, winner: PUs 0-3", Test: "pp512", Samples: []float64{420.6, 400, 700}},
		{Name: "decode, winner: PUs 0-3", Test: "tg64", Samples: []float64{1000}},
	}
	files, err := export.Files(b, "llm-d", options(t))
	if err != nil {
		t.Fatal(err)
	}
	if text := files[0].Text; !strings.Contains(text, "peakPrefillThroughput: 421\n") ||
		!strings.Contains(text, "measured by tune") {
		t.Errorf("%s", text)
	}
}

// picker has the fields of llm-d's EndpointPickerConfig (llm-d.ai/v1alpha1, router 0.9,
// apix/config/v1alpha1) that the export writes. It is decoded strictly.
type picker struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Plugins    []struct {
		Type, Name string
		Parameters map[string]any
	}
	SchedulingProfiles []struct {
		Name    string
		Plugins []struct {
			Ref    string `yaml:"pluginRef"`
			Weight float64
		}
	} `yaml:"schedulingProfiles"`
	DataLayer struct {
		Discovery pluginRef
		Sources   []struct {
			Ref        string `yaml:"pluginRef"`
			Extractors []pluginRef
		}
	} `yaml:"dataLayer"`
}

type pluginRef struct {
	Ref string `yaml:"pluginRef"`
}

// TestLLMDFiles checks that every plugin that the picker's configuration refers to is defined, and
// that the lists of endpoints and of Envoy's clusters are complete.
func TestLLMDFiles(t *testing.T) {
	files, err := export.Files(bundletest.New(t), "llm-d", options(t))
	if err != nil {
		t.Fatal(err)
	}
	var epp picker
	var list struct {
		Endpoints []struct {
			Name, Address, Port string
			Labels              map[string]string
		}
	}
	var envoy struct {
		Admin     any
		Resources struct {
			Listeners []any
			Clusters  []struct {
				Name string
				Rest map[string]any `yaml:",inline"`
			}
		} `yaml:"static_resources"`
	}
	for i, v := range []any{&epp, &list, &envoy} {
		dec := yaml.NewDecoder(strings.NewReader(files[i].Text))
		dec.KnownFields(true)
		if err := dec.Decode(v); err != nil {
			t.Fatalf("%s: %v", files[i].Name, err)
		}
	}
	checkRefs(t, &epp)
	if len(list.Endpoints) != 2 || list.Endpoints[1].Address != "10.0.0.2" || list.Endpoints[1].Port != "8081" ||
		list.Endpoints[0].Name == list.Endpoints[1].Name {
		t.Errorf("endpoints %+v", list)
	}
	clusters := envoy.Resources.Clusters
	if len(envoy.Resources.Listeners) != 1 || len(clusters) != 2 || clusters[0].Name != "epp" ||
		!strings.Contains(files[2].Text, "cluster: "+clusters[1].Name+",") {
		t.Errorf("envoy.yaml %v", envoy)
	}
}

// checkRefs checks that every plugin that a picker refers to is defined.
func checkRefs(t *testing.T, epp *picker) {
	t.Helper()
	defined := map[string]bool{}
	for _, p := range epp.Plugins {
		defined[p.Name], defined[p.Type] = true, true
	}
	refs := []string{epp.DataLayer.Discovery.Ref}
	for _, p := range epp.SchedulingProfiles[0].Plugins {
		refs = append(refs, p.Ref)
	}
	for _, s := range epp.DataLayer.Sources {
		refs = append(refs, s.Ref)
		for _, x := range s.Extractors {
			refs = append(refs, x.Ref)
		}
	}
	for _, ref := range refs {
		if ref == "" || !defined[ref] {
			t.Errorf("the picker uses %q, which is not defined", ref)
		}
	}
	if len(refs) < 7 {
		t.Errorf("only %d plugins are used: %v", len(refs), refs)
	}
}
