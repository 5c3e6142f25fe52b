package kubetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
)

// collections are the paths of the API at which objects of each kind are made.
var collections = map[string]string{
	"ConfigMap":                "/api/v1/namespaces/default/configmaps",
	"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"Deployment":               "/apis/apps/v1/namespaces/default/deployments",
	"InferencePool":            "/apis/inference.networking.k8s.io/v1/namespaces/default/inferencepools",
	"NodeFeatureRule":          "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeaturerules",
	"PersistentVolume":         "/api/v1/persistentvolumes",
	"PersistentVolumeClaim":    "/api/v1/namespaces/default/persistentvolumeclaims",
	"Pod":                      "/api/v1/namespaces/default/pods",
	"PodDisruptionBudget":      "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
	"Secret":                   "/api/v1/namespaces/default/secrets",
	"Service":                  "/api/v1/namespaces/default/services",
}

var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// create sends a document to the API server, which refuses unknown and repeated fields.
func (r *run) create(document string, dryRun bool) error {
	kind := kindLine.FindStringSubmatch(document)
	if kind == nil || collections[kind[1]] == "" {
		return fmt.Errorf("the kind is unknown: %.200s", document)
	}
	req := r.Client.RESTClient().Post().AbsPath(collections[kind[1]]).SetHeader("Content-Type", "application/yaml").
		Param("fieldValidation", "Strict").Body([]byte(document))
	if dryRun {
		req = req.Param("dryRun", "All")
	}
	if err := req.Do(context.Background()).Error(); err != nil {
		return fmt.Errorf("%s: %w", kind[1], err)
	}
	return nil
}

// testManifests checks that the API server accepts every exported document strictly, and that it
// would refuse one with a mistake.
func (r *run) testManifests(t *testing.T) {
	r.define(t)
	kinds := map[string]bool{}
	for _, document := range r.manifests {
		check(t, r.create(document, true))
		kind := kindLine.FindStringSubmatch(document)[1]
		kinds[kind] = true
		for name, wrong := range map[string]string{
			"an unknown field":  document + "\nspecs: {}\n",
			"a repeated field":  document + "\nkind: " + kind + "\n",
			"an unknown nested": strings.Replace(document, "\nspec:\n", "\nspec:\n  unknown: 1\n", 1),
		} {
			if err := r.create(wrong, true); err == nil {
				t.Errorf("%s with %s is accepted", kind, name)
			}
		}
	}
	for _, kind := range []string{"Deployment", "Service", "PodDisruptionBudget", "InferencePool", "NodeFeatureRule"} {
		if !kinds[kind] {
			t.Errorf("the export has no %s", kind)
		}
	}
}

// define makes the custom resources known.
func (r *run) define(t *testing.T) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(*crdsFlag, "*.yaml"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no definitions of custom resources: %v", err)
	}
	for _, path := range list {
		text, err := os.ReadFile(path)
		check(t, err)
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			if kindLine.MatchString(document) {
				check(t, r.create(document, false))
			}
		}
	}
	for _, kind := range []string{"InferencePool", "NodeFeatureRule"} {
		check(t, r.Await(kind+" is known", func() bool {
			return r.Client.RESTClient().Get().AbsPath(collections[kind]).Do(context.Background()).Error() == nil
		}))
	}
}

// apply makes the exported objects, with the names of this image and model, and what they refer to.
func (r *run) apply(t *testing.T) {
	t.Helper()
	bundle, err := os.ReadFile(filepath.Join(r.dir, "tales.sandwich"))
	check(t, err)
	encode := base64.StdEncoding.EncodeToString
	objects := []string{
		fmt.Sprintf(configMap, encode(bundle)),
		fmt.Sprintf(secret, encode([]byte(apiKey+"\n"))),
		fmt.Sprintf(volume, filepath.Join(r.dir, "models")), claim,
	}
	for _, document := range r.manifests {
		document = strings.ReplaceAll(document, "MODEL.gguf", "tales.gguf")
		objects = append(objects, imageLine.ReplaceAllString(document, "${1}sandwich:test"))
	}
	for _, document := range objects {
		if err := r.create(document, false); err != nil && !errors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// imageLine matches the image of an exported manifest, which has the tag of the version.
var imageLine = regexp.MustCompile(`(image: )sandwich:\S+`)

const apiKey = "key-of-the-test"

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: sandwich-plans}
binaryData: {tales.sandwich: %s}
`

const secret = `apiVersion: v1
kind: Secret
metadata: {name: sandwich-keys}
data: {keys: %s}
`

const volume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: models}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadOnlyMany]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef: {namespace: default, name: models}
  hostPath: {path: %q}
`

const claim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec:
  accessModes: [ReadOnlyMany]
  storageClassName: ""
  volumeName: models
  resources: {requests: {storage: 1Gi}}
`
