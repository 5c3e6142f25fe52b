package kubetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testSharedCPUs serves from a pod without exclusive CPUs. Its CPUs change while it serves, since
// another pod gets one of them exclusively and then ends. No request fails.
func (r *run) testSharedCPUs(t *testing.T) {
	ctx := context.Background()
	check(t, r.Client.AppsV1().Deployments("default").DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{}))
	check(t, r.Await("the replicas have ended", func() bool { return len(r.pods()) == 0 }))
	check(t, r.create(sharedPod, false))
	server := r.awaitPod(t, "shared")
	all, given := cpus(t), r.gives[0]
	var rest []int
	for _, cpu := range all {
		if cpu != given {
			rest = append(rest, cpu)
		}
	}
	r.awaitCPUs(t, server, all)
	tr := startTraffic(t, server.Status.PodIP+":8080", requests/10)
	check(t, r.create(exclusivePod, false))
	r.awaitPod(t, "exclusive")
	r.awaitCPUs(t, server, rest)
	r.awaitLog(t, fmt.Sprintf("PU %d of the plan became unavailable", given))
	check(t, r.Client.CoreV1().Pods("default").Delete(ctx, "exclusive", meta.DeleteOptions{}))
	r.awaitCPUs(t, server, all)
	r.awaitLog(t, "all PUs of the plan are available again")
	tr.stop()
	for l := range strings.Lines(r.log("shared")) {
		if strings.HasPrefix(l, "note:") {
			t.Log(strings.TrimSpace(l))
		}
	}
}

// awaitPod returns a pod when it is ready.
func (r *run) awaitPod(t *testing.T, name string) (p *core.Pod) {
	t.Helper()
	err := r.Await(name+" is ready", func() (ready bool) {
		var err error
		p, err = r.Client.CoreV1().Pods("default").Get(context.Background(), name, meta.GetOptions{})
		return err == nil && isReady(p)
	})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, r.describe(), r.log(name))
	}
	return p
}

// awaitCPUs returns when the container of a pod has these CPUs.
func (r *run) awaitCPUs(t *testing.T, p *core.Pod, want []int) {
	t.Helper()
	check(t, r.Await(fmt.Sprintf("%s has the CPUs %v", p.Name, want), func() bool {
		return fmt.Sprint(parseCPUs(t, r.container(t, p, "burstable").cpuset)) == fmt.Sprint(want)
	}))
}

// awaitLog returns when the server has written a text.
func (r *run) awaitLog(t *testing.T, text string) {
	t.Helper()
	err := r.Await(fmt.Sprintf("it says %q", text), func() bool { return strings.Contains(r.log("shared"), text) })
	if err != nil {
		t.Fatalf("%v\n%s", err, r.log("shared"))
	}
}

const sharedPod = `apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  nodeSelector: {kubernetes.io/hostname: node-0}
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 5
  containers:
    - name: sandwich
      image: sandwich:test
      args: ["serve", "--listen", "0.0.0.0:8080"]
      env: [{name: XDG_DATA_HOME, value: /data}]
      securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      readinessProbe: {httpGet: {path: /health, port: 8080}, periodSeconds: 1}
      resources: {requests: {memory: 128Mi}}
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

const exclusivePod = `apiVersion: v1
kind: Pod
metadata: {name: exclusive}
spec:
  nodeSelector: {kubernetes.io/hostname: node-0}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
    - name: pause
      image: pause:test
      resources:
        requests: {cpu: "1", memory: 32Mi}
        limits: {cpu: "1", memory: 32Mi}
`
