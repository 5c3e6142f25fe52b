package export_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sandwich/plans/internal/jsonschema"
	"sandwich/profiles"
)

// manifests returns the documents of the export to Kubernetes.
func manifests(t *testing.T) []string {
	list := strings.Split(exportTest(t, "kubernetes"), "\n---\n")
	if len(list) != 5 {
		t.Fatalf("%d documents", len(list))
	}
	return list
}

// TestManifestsFitTheSchemas checks every field against what Kubernetes, node-feature-discovery and
// the Gateway API inference extension publish (testdata/kubernetes.json names the sources). Unknown
// fields are errors.
func TestManifestsFitTheSchemas(t *testing.T) {
	root := jsonschema.Read(t, filepath.Join("testdata", "kubernetes.json"))
	check := func(text string) error {
		v := jsonschema.Generic(t, []byte(text))
		kind, _ := v.(map[string]any)["kind"].(string)
		return root.Check(root.Defs[kind], kind, v)
	}
	list := manifests(t)
	for _, text := range list {
		if err := check(text); err != nil {
			t.Error(err)
		}
	}
	for i, wrong := range []map[string]string{
		{"matchFeatures:": "matchFeature:", "op: In": "op: Is", "nfd.k8s-sigs.io/v1alpha1": "nfd.k8s-sigs.io/v1"},
		{"nodeSelector:": "nodeselector:", "replicas: 2": `replicas: "2"`, `cpu: "4"`: "cpu: 4", "Mi}": "MB}",
			"containerPort: 8081": "containerPort: 80810", "selector:\n    matchLabels": "selectors:\n    matchLabels",
			"port: health": "port: the-health-of-it-all", "app: sandwich": "app: sand/wich", "claimName": "claim",
			"runAsNonRoot: true": "runAsNonRoot: 1", "readOnlyRootFilesystem": "readOnlyRootFileSystem",
			"terminationGracePeriodSeconds: 55": "terminationGracePeriodSeconds: 55s",
			"sleep: {seconds: 5}":               "sleep: 5",
			"maxSurge":                          "surge", `drop: ["ALL"]`: "drop: ALL", "emptyDir: {}": "emptyDir: 1"},
		{"targetPort: http": "targetPorts: http", "port: 8080": `port: "8080"`, "selector: {": "selectors: {"},
		{"maxUnavailable: 1": "maxUnavailable: one", "policy/v1": "policy/v1beta1", "matchLabels": "labels"},
		{"targetPorts:": "targetPort:", "number: 8080": "number: 0", "failureMode: FailOpen": "failureMode: Open",
			"endpointPickerRef": "extensionRef", "inference.networking.k8s.io/v1": "inference.networking.x-k8s.io/v1"},
	} {
		for old, bad := range wrong {
			text := strings.ReplaceAll(list[i], old, bad)
			if text == list[i] {
				t.Errorf("%q does not occur", old)
			}
			if check(text) == nil {
				t.Errorf("%s passes", bad)
			}
		}
	}
}

// TestKubectlReadsTheDeployment checks that kubectl, where it is installed, keeps every field. It
// drops those that the types of Kubernetes do not have.
func TestKubectlReadsTheDeployment(t *testing.T) {
	tool, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed: install the Kubernetes client")
	}
	text := manifests(t)[1]
	read := func(text string) any {
		cmd := exec.Command(tool, "set", "env", "--local", "--filename=-", "A=b", "--output=json")
		cmd.Stdin, cmd.Env = strings.NewReader(text), []string{"HOME=" + t.TempDir()}
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("kubectl does not run here: %v", err)
		}
		var v any
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	asJSON := func(text string) (v any) {
		data, err := profiles.CanonicalJSON(jsonschema.Generic(t, []byte(text)))
		if err == nil {
			err = json.Unmarshal(data, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const env = "- {name: XDG_DATA_HOME, value: /data}"
	changed := strings.Replace(text, env, env+"\n            - {name: A, value: b}", 1)
	if got, want := read(text), asJSON(changed); !holds(got, want) {
		t.Errorf("kubectl read %v\nof %v", got, want)
	}
	if bad := strings.Replace(text, "failureThreshold", "failurethreshhold", 1); holds(read(bad), asJSON(bad)) {
		t.Error("kubectl keeps a field that there is not")
	}
}

// holds says that a has all of b, and perhaps more fields.
func holds(a, b any) bool {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		for name, x := range b {
			ok = ok && holds(a[name], x)
		}
		return ok
	case []any:
		a, ok := a.([]any)
		ok = ok && len(a) == len(b)
		for i := 0; ok && i < len(b); i++ {
			ok = holds(a[i], b[i])
		}
		return ok
	}
	return reflect.DeepEqual(a, b)
}
