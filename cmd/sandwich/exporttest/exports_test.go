package exporttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	"sigs.k8s.io/yaml"
)

var root = filepath.Join("..", "..", "..")

// export returns the folder with the files of a target.
func export(t *testing.T, target string) string {
	t.Helper()
	binary := filepath.Join(root, "bin", "sandwich")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("run make build: %v", err)
	}
	dir := t.TempDir()
	plan := filepath.Join(root, "plans", "testdata", "v2", "tuned.plan")
	out, err := exec.Command(binary, "plan", "export", plan, "--to", target, "--output", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("plan export: %v\n%s", err, out)
	}
	return dir
}

// documents returns the YAML documents of a file.
func documents(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n---\n")
}

// TestManifests decodes the manifests into the types of Kubernetes, which refuses unknown and
// repeated fields, and checks what a Deployment, its Service and its budget must agree on.
func TestManifests(t *testing.T) {
	var (
		deployment apps.Deployment
		service    core.Service
		budget     policy.PodDisruptionBudget
		pool       inference.InferencePool
	)
	into := map[string]any{"Deployment": &deployment, "Service": &service, "PodDisruptionBudget": &budget,
		"InferencePool": &pool, "NodeFeatureRule": nil} // plans/export checks the last one by its schema
	for _, text := range documents(t, filepath.Join(export(t, "kubernetes"), "sandwich.yaml")) {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatal(err)
		}
		v, known := into[head.Kind]
		delete(into, head.Kind)
		if !known {
			t.Errorf("kind %q is unknown or repeated", head.Kind)
		} else if v != nil {
			if err := yaml.UnmarshalStrict([]byte(text), v); err != nil {
				t.Errorf("%s: %v", head.Kind, err)
			}
		}
	}
	if len(into) != 0 {
		t.Fatalf("the export lacks %v", into)
	}
	pod := deployment.Spec.Template
	for name, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector,
		"PodDisruptionBudget": budget.Spec.Selector.MatchLabels,
	} {
		for key, value := range selector {
			if pod.Labels[key] != value {
				t.Errorf("the selector of the %s does not match the pods: %s=%s", name, key, value)
			}
		}
	}
	for key, value := range pool.Spec.Selector.MatchLabels {
		if pod.Labels[string(key)] != string(value) {
			t.Errorf("the selector of the InferencePool does not match the pods: %s=%s", key, value)
		}
	}
	c := pod.Spec.Containers[0]
	limit, request := c.Resources.Limits.Cpu(), c.Resources.Requests.Cpu()
	if limit.Cmp(*request) != 0 || limit.MilliValue()%1000 != 0 {
		t.Errorf("the CPUs are not exclusive: %+v", c.Resources)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
		!*pod.Spec.SecurityContext.RunAsNonRoot || *pod.Spec.SecurityContext.RunAsUser == 0 {
		t.Errorf("security contexts %+v, %+v", s, pod.Spec.SecurityContext)
	}
	if grace := *pod.Spec.TerminationGracePeriodSeconds; grace <= c.Lifecycle.PreStop.Sleep.Seconds+10+30 {
		t.Errorf("the grace period of %d s is not above preStop, drain delay and grace", grace)
	}
	mounts := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		mounts[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !mounts[m.Name] {
			t.Errorf("volume %s is not defined", m.Name)
		}
	}
}

// TestUnknownFieldsAreRefused checks that the decoder is strict.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, text := range []string{"kind: Deployment\nspecs: {}", "kind: Deployment\nspec: {replicas: two}",
		"kind: Deployment\nkind: Deployment"} {
		if err := yaml.UnmarshalStrict([]byte(text), &apps.Deployment{}); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
