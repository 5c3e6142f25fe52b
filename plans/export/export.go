// Package export translates plans into the configuration of other tools.
package export

import (
	"fmt"
	"math/big"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Text translates the service configuration of a plan into the configuration of another tool, as
// text with comments that name what the tool cannot express. Memory is the number of bytes that
// serving needs, for targets with a memory limit.
func Text(b *bundle.Bundle, target string, memory int64) (string, error) {
	for _, t := range exports {
		if t.name == target {
			var e export
			e.note("plan %s (%s), for %s", message.Clip(b.Plan.Name, 60), b.State(),
				message.Clip(b.Host.Host.CPUModel, 60))
			e.b, e.memory = b, memory
			t.write(&e)
			return e.text.String(), nil
		}
	}
	return "", fmt.Errorf("unknown export target %.40q; use one of %s", target, strings.Join(Targets(), ", "))
}

// Targets returns the names of the targets of Text.
func Targets() (names []string) {
	for _, t := range exports {
		names = append(names, t.name)
	}
	return names
}

// exports lists the targets of Text in the order of the help text.
var exports = []struct {
	name  string
	write func(e *export)
}{{"llama-server", toLlamaServer}, {"vllm", toVLLM}, {"numactl", toNumactl}, {"openmp", toOpenMP},
	{"systemd", toSystemd}, {"kubernetes", toKubernetes}, {"env", toEnv}}

// export builds the text of one target.
type export struct {
	b      *bundle.Bundle
	memory int64
	text   strings.Builder
}

// note writes a comment line. It replaces control characters, so that text from the plan cannot end
// the comment.
func (e *export) note(format string, a ...any) {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, a...))
	fmt.Fprintf(&e.text, "# %s\n", clean)
}

// line writes a line.
func (e *export) line(format string, a ...any) { fmt.Fprintf(&e.text, format+"\n", a...) }

// lost writes comments on the properties of a plan that no other tool keeps.
func (e *export) lost() {
	e.note("lost: the schedules of %s; the tool uses its own kernels", message.Plural(len(e.b.Plan.Kernels()),
		"micro-kernel"))
	if e.b.Plan.TP() == 1 && e.b.Plan.Rounding() == "" {
		e.note("lost: batch-invariant logits")
	}
	if text := e.b.Plan.PlacementText(); text != "" {
		e.note("lost: %s", text)
	}
}

// nodesOf returns the memory nodes of the ranks or none if a rank is bound to no node.
func nodesOf(p *plans.Plan) (out topotree.CPUSet) {
	for _, r := range p.Ranks {
		if r.NUMANode < 0 {
			return topotree.CPUSet{}
		}
		out = out.Union(topotree.NewCPUSet(r.NUMANode))
	}
	return out
}

// hexMask returns a set of PUs as a hexadecimal affinity mask without 0x.
func hexMask(pus topotree.CPUSet) string {
	mask := new(big.Int)
	for pu := range pus.All() {
		mask.SetBit(mask, pu, 1)
	}
	return mask.Text(16)
}

// toLlamaServer writes options of llama.cpp's llama-server (tools/server/README.md). --threads and
// --cpu-mask apply to generation, the -batch options to prompts.
func toLlamaServer(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: the hot switch between the phases; llama.cpp keeps a thread pool for each phase")
	if p.TP() > 1 {
		e.note("lost: %d ranks; threads split all rows, and the kernel places weights on first touch", p.TP())
	}
	e.note("--poll 50 spins and then sleeps, which is closest to 50 microseconds of spinning; builds with OpenMP " +
		"ignore it and the masks: set GOMP_SPINCOUNT for the spinning; GOMP_CPU_AFFINITY lists the PUs, " +
		"those of generation first")
	words := []string{"llama-server",
		fmt.Sprintf("--threads %d --cpu-mask %s --cpu-strict 1", p.Decode.PUs.Count(), hexMask(p.Decode.PUs)),
		fmt.Sprintf("--threads-batch %d --cpu-mask-batch %s --cpu-strict-batch 1", p.Prefill.PUs.Count(),
			hexMask(p.Prefill.PUs)),
		fmt.Sprintf("--ubatch-size %d --cache-type-k %s --cache-type-v %s", p.Chunk, p.KV, p.KV)}
	if p.KV.String() == "q8_0" {
		words = append(words, "--flash-attn on") // required by llama.cpp for a quantized value cache
	}
	words = append(words, "--poll 50")
	if n := nodesOf(p); !n.IsEmpty() && p.TP() == 1 {
		words[0] = fmt.Sprintf("numactl --membind=%s %s", n, words[0])
		words = append(words, "--numa numactl")
	} else if p.TP() > 1 {
		words = append(words, "--numa distribute")
	}
	e.line("GOMP_CPU_AFFINITY=%q %s \\\n  --model MODEL.gguf", spaced(openMPOrder(p)), strings.Join(words, " \\\n  "))
}

// openMPOrder returns the PUs of both phases in the order in which libgomp assigns them to threads.
// The PUs of generation come first, since its threads are created in that order.
func openMPOrder(p *plans.Plan) []int {
	return append(p.Decode.PUs.Slice(), p.Prefill.PUs.Minus(p.Decode.PUs).Slice()...)
}

// spaced returns a list of PUs separated by spaces, in its order.
func spaced(pus []int) string { return strings.Trim(fmt.Sprint(pus), "[]") }

// toVLLM writes the variables of vLLM's guide for CPUs: one list of PUs per rank, separated by |.
func toVLLM(e *export) {
	p := &e.b.Plan
	e.lost()
	if !p.Prefill.PUs.Equal(p.Decode.PUs) {
		e.note("lost: vLLM has one set of PUs for both phases; these are the PUs of prefill (decode used %s)",
			p.Decode.PUs)
	}
	e.note("lost: GGUF; use the same model in a format that vLLM reads")
	var ranks []string
	for _, r := range p.Ranks {
		ranks = append(ranks, r.PUs.Intersect(p.Prefill.PUs).String())
	}
	kv := max(1, (p.Model.KVBytesPerToken(p.KV)*8*4096+1<<30-1)>>30)
	e.note("the cache size is for 8 requests of 4096 tokens, in GiB, in vLLM's cache type (the plan uses %s)",
		p.KV)
	e.line("VLLM_CPU_OMP_THREADS_BIND='%s' \\\nVLLM_CPU_KVCACHE_SPACE=%d \\", strings.Join(ranks, "|"), kv)
	e.line("vllm serve MODEL --tensor-parallel-size %d --max-num-batched-tokens %d", p.TP(), max(p.Chunk, 256))
}

// toNumactl writes a numactl(8) command that binds any program.
func toNumactl(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: the whole process is bound to the PUs of both phases (prefill %s, decode %s)", p.Prefill.PUs,
		p.Decode.PUs)
	if p.TP() > 1 {
		e.note("lost: the memory node of each rank; the kernel places pages on first touch")
	}
	bind := ""
	if n := nodesOf(p); !n.IsEmpty() {
		bind = " --membind=" + n.String()
	} else {
		e.note("the plan does not bind memory to a node")
	}
	e.line("numactl --physcpubind=%s%s PROGRAM", p.PUs(), bind)
}

// toOpenMP writes variables of the OpenMP 5 specification, chapter 6.
func toOpenMP(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: separate PUs for each phase; these are the PUs of prefill (decode used %s); memory is not bound",
		p.Decode.PUs)
	var places []string
	for pu := range p.Prefill.PUs.All() {
		places = append(places, fmt.Sprintf("{%d}", pu))
	}
	e.line("export OMP_NUM_THREADS=%d", p.Prefill.PUs.Count())
	e.line("export OMP_PLACES='%s'", strings.Join(places, ","))
	e.line("export OMP_PROC_BIND=close")
	e.line("export OMP_DYNAMIC=false")
	e.line("export OMP_WAIT_POLICY=passive")
}

// toSystemd writes a unit that serves with this plan, see systemd.exec(5) and
// systemd.resource-control(5).
func toSystemd(e *export) {
	p := &e.b.Plan
	e.note("copy the plan to /etc/sandwich/PLAN.sandwich and the model to /var/lib/sandwich/MODEL.gguf")
	e.note("nothing is lost: sandwich binds its workers itself; the unit only limits what it may use")
	e.line("[Unit]\nDescription=Language model under a sandwich plan\nAfter=network.target\n")
	e.line("[Service]\nExecStart=/usr/local/bin/sandwich serve --strict --plan /etc/sandwich/PLAN.sandwich " +
		"--model /var/lib/sandwich/MODEL.gguf --listen 127.0.0.1:8080")
	e.line("DynamicUser=yes\nRestart=on-failure\nRestartPreventExitStatus=2 4")
	e.line("CPUAffinity=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	e.line("AllowedCPUs=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	if n := nodesOf(p); !n.IsEmpty() {
		e.line("AllowedMemoryNodes=%s", strings.ReplaceAll(n.String(), ",", " "))
	}
	if e.memory > 0 {
		e.note("memory that serving needs, plus a quarter for the program and the page cache")
		e.line("MemoryMax=%dM", (e.memory+e.memory/4)>>20+64)
	}
	e.line("LimitMEMLOCK=infinity\nTimeoutStopSec=45\n\n[Install]\nWantedBy=multi-user.target")
}

// toEnv writes the service configuration as shell variables.
func toEnv(e *export) {
	p := &e.b.Plan
	e.lost()
	e.line("SANDWICH_PREFILL_PUS=%s", p.Prefill.PUs)
	e.line("SANDWICH_PREFILL_THREADS=%d", p.Prefill.PUs.Count())
	e.line("SANDWICH_DECODE_PUS=%s", p.Decode.PUs)
	e.line("SANDWICH_DECODE_THREADS=%d", p.Decode.PUs.Count())
	e.line("SANDWICH_RANKS=%d", p.TP())
	for i, r := range p.Ranks {
		e.line("SANDWICH_RANK%d_PUS=%s\nSANDWICH_RANK%d_NODE=%d", i, r.PUs, i, r.NUMANode)
	}
	e.line("SANDWICH_KV=%s\nSANDWICH_CHUNK=%d", p.KV, p.Chunk)
	e.line("SANDWICH_MEMORY_BYTES=%d", e.memory)
	e.line("SANDWICH_FINGERPRINT=%s", e.b.Host.Fingerprint())
}

// hostLabel returns a label value for a host: the first 16 digits of its fingerprint.
func hostLabel(host *profiles.Profile) string {
	return strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16]
}

// toKubernetes writes a Deployment of guaranteed QoS, for nodes whose kubelet has the static CPU
// manager policy, and a NodeFeatureRule that labels the nodes which the plan was made for.
func toKubernetes(e *export) {
	p := &e.b.Plan
	cpus := p.PUs().Count()
	mib := (e.memory+e.memory/4)>>20 + 256
	label := hostLabel(&e.b.Host)
	e.note("lost: the choice of PUs. The static CPU manager assigns any %s exclusively; a plan", message.Plural(cpus,
		"whole PU"))
	e.note("names PUs by number. It works on a node that assigns the PUs %s (no other pod uses them); --strict",
		p.PUs())
	e.note("rejects it on other nodes.")
	e.note("kubelet: --cpu-manager-policy=static --topology-manager-policy=single-numa-node")
	e.note("declare the host of each node in /etc/kubernetes/node-feature-discovery/features.d/sandwich:")
	e.note("  sandwich.fingerprint=%s", label)
	e.line(kubernetesRule, label)
	e.line(kubernetesDeployment, label, cpus, mib, cpus, mib)
}

const kubernetesRule = `apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata:
  name: sandwich-%[1]s
spec:
  rules:
    - name: host of the plan
      labels:
        sandwich.dev/host: "%[1]s"
      matchFeatures:
        - feature: local.feature
          matchExpressions:
            sandwich.fingerprint: {op: In, value: ["%[1]s"]}
---`

const kubernetesDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: sandwich
  labels: {app: sandwich}
spec:
  replicas: 1
  selector:
    matchLabels: {app: sandwich}
  template:
    metadata:
      labels: {app: sandwich}
    spec:
      nodeSelector:
        sandwich.dev/host: "%s"
      containers:
        - name: sandwich
          image: sandwich:latest
          args: ["serve", "--strict", "--plan", "/plans/PLAN.sandwich", "--model", "/models/MODEL.gguf",
            "--listen", "0.0.0.0:8080", "--api-key-file", "/keys/keys", "--health-listen", "0.0.0.0:8081"]
          ports:
            - {name: http, containerPort: 8080}
            - {name: health, containerPort: 8081}
          startupProbe:
            httpGet: {path: /health, port: health}
            periodSeconds: 5
            failureThreshold: 120
          readinessProbe:
            httpGet: {path: /health, port: health}
          resources:
            requests: {cpu: "%d", memory: %dMi}
            limits: {cpu: "%d", memory: %dMi}
          volumeMounts:
            - {name: plans, mountPath: /plans, readOnly: true}
            - {name: models, mountPath: /models, readOnly: true}
            - {name: keys, mountPath: /keys, readOnly: true}
      volumes:
        - name: plans
          configMap: {name: sandwich-plans}
        - name: models
          persistentVolumeClaim: {claimName: models, readOnly: true}
        - name: keys
          secret: {secretName: sandwich-keys}`
