package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandwich/cmd/sandwich/kubetest/sandbox"
)

// cpus returns the numbers of the CPUs that this process may use.
func cpus(t *testing.T) (list []int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	check(t, err)
	return parseCPUs(t, field(string(text), "Cpus_allowed_list"))
}

// parseCPUs reads a list such as 0-3,8.
func parseCPUs(t *testing.T, text string) (list []int) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		first, last, found := strings.Cut(part, "-")
		if !found {
			last = first
		}
		from, err := strconv.Atoi(first)
		check(t, err)
		to, err := strconv.Atoi(last)
		check(t, err)
		for cpu := from; cpu <= to; cpu++ {
			list = append(list, cpu)
		}
	}
	return list
}

// field returns a field of /proc/PID/status.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// pods returns the pods of the Deployment.
func (r *run) pods() []core.Pod {
	list, err := r.Client.CoreV1().Pods("default").List(context.Background(),
		meta.ListOptions{LabelSelector: "app=sandwich"})
	if err != nil {
		return nil
	}
	return list.Items
}

func isReady(p *core.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
}

// log returns what the container of a pod wrote.
func (r *run) log(pod string) string {
	text, err := r.Client.CoreV1().Pods("default").GetLogs(pod, &core.PodLogOptions{}).DoRaw(context.Background())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// describe returns the states and logs of the pods.
func (r *run) describe() (text string) {
	for _, p := range r.pods() {
		state, err := json.Marshal(p.Status)
		text += fmt.Sprintf("%s on %s: %s %v\n%s\n", p.Name, p.Spec.NodeName, state, err, r.log(p.Name))
	}
	events, err := r.Client.CoreV1().Events("default").List(context.Background(), meta.ListOptions{})
	if err == nil {
		for _, e := range events.Items {
			text += fmt.Sprintf("%s %s: %s\n", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	return text
}

// container is a running container.
type container struct {
	cpuset string // CPUs of its cgroup
	pid    string // of its process
}

// container returns the container of a pod. Pods with exclusive CPUs have no class in the path.
func (r *run) container(t *testing.T, p *core.Pod, class string) (c container) {
	t.Helper()
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	path := filepath.Join(sandbox.Cgroup(), p.Spec.NodeName, "kubepods", class, "pod"+string(p.UID), id)
	var err error
	c.cpuset, err = sandbox.CgroupFile("cpuset", path, "cpuset.cpus")
	check(t, err)
	pids, err := sandbox.CgroupFile("cpuset", path, "cgroup.procs")
	check(t, err)
	c.pid = strings.Fields(pids + " none")[0]
	return c
}

// testPods checks that both replicas become ready, each on a node of its own, without privileges
// and under the plan with the CPU that the kubelet gave it.
func (r *run) testPods(t *testing.T) {
	r.apply(t)
	err := r.Await("two pods are ready", func() bool {
		ready := 0
		for _, p := range r.pods() {
			if isReady(&p) {
				ready++
			}
		}
		return ready == nodes
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.describe())
	}
	on := map[string]bool{}
	for _, p := range r.pods() {
		on[p.Spec.NodeName] = true
		t.Run(p.Spec.NodeName, func(t *testing.T) { r.testPod(t, &p) })
	}
	if len(on) != nodes {
		t.Errorf("the pods run on %v", on)
	}
}

func (r *run) testPod(t *testing.T, p *core.Pod) {
	number, err := strconv.Atoi(strings.TrimPrefix(p.Spec.NodeName, "node-"))
	check(t, err)
	given := fmt.Sprint(r.gives[number])
	var state struct {
		PolicyName string
		Entries    map[string]map[string]string
	}
	text, err := os.ReadFile(filepath.Join(sandbox.Dir(), p.Spec.NodeName, "lib", "kubelet", "cpu_manager_state"))
	check(t, err)
	check(t, json.Unmarshal(text, &state))
	if state.PolicyName != "static" || state.Entries[string(p.UID)]["sandwich"] != given {
		t.Errorf("the kubelet gives %+v, not CPU %s", state, given)
	}
	c := r.container(t, p, "")
	text, err = os.ReadFile("/proc/" + c.pid + "/status")
	check(t, err)
	for name, want := range map[string]string{"Uid": "65532", "Gid": "65532", "NoNewPrivs": "1", "Seccomp": "2",
		"CapEff": "0000000000000000", "CapBnd": "0000000000000000", "Cpus_allowed_list": given} {
		value := field(string(text), name)
		if rest := strings.ReplaceAll(value, want, ""); value == "" || strings.TrimSpace(rest) != "" {
			t.Errorf("%s of the process is %q, not %s", name, value, want)
		}
	}
	if c.cpuset != given {
		t.Errorf("the container has the CPUs %s, not %s", c.cpuset, given)
	}
	mounts, err := os.ReadFile("/proc/" + c.pid + "/mountinfo")
	check(t, err)
	if fields := strings.Fields(string(mounts)); len(fields) < 6 || fields[4] != "/" ||
		!slices.Contains(strings.Split(fields[5], ","), "ro") {
		t.Errorf("the root file system can be written: %.200s", mounts)
	}
	r.testPlan(t, p, r.gives[number])
}

// testPlan checks that a pod serves under the tuned plan, renumbered where it has another CPU than
// the plan was tuned on.
func (r *run) testPlan(t *testing.T, p *core.Pod, given int) {
	t.Helper()
	text, tuned := r.log(p.Name), r.gives[1]
	note := fmt.Sprintf("its PUs %d are the PUs %d here", tuned, given)
	if renumbered := strings.Contains(text, note); renumbered != (given != tuned) {
		t.Errorf("tuned on CPU %d, given CPU %d, it says: %s", tuned, given, text)
	}
	t.Logf("%s on CPU %d: %s", p.Spec.NodeName, given, strings.TrimSpace(text))
	info, err := get("http://" + p.Status.PodIP + ":8081/metrics")
	check(t, err)
	if l := line(info, "sandwich_info"); !strings.Contains(l, `tuned="yes"`) {
		t.Errorf("it does not serve under the tuned plan: %s", l)
	}
}

// line returns the first line of a text that begins with a word.
func line(text, word string) string {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, word) {
			return l
		}
	}
	return ""
}
