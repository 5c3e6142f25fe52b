package plans

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"sandwich/profiles"
)

// Export writes the service configuration of a plan in the words of another tool, as text that the
// tool or a shell reads, with comments on what is lost there. Memory is the bytes that serving
// takes, for the targets that must be told.
func Export(b *Bundle, target string, memory int64) (string, error) {
	for _, t := range exports {
		if t.name == target {
			var e export
			e.note("plan %s (%s), for %s", clip(b.Plan.Name), b.State(), clip(b.Host.Host.CPUModel))
			e.b, e.memory = b, memory
			t.write(&e)
			return e.text.String(), nil
		}
	}
	return "", fmt.Errorf("there is no export to %.40q; choose one of %s", target, strings.Join(ExportTargets(), ", "))
}

// ExportTargets lists what Export writes for.
func ExportTargets() (names []string) {
	for _, t := range exports {
		names = append(names, t.name)
	}
	return names
}

var exports = []struct {
	name  string
	write func(e *export)
}{{"llama-server", toLlamaServer}, {"vllm", toVLLM}, {"numactl", toNumactl}, {"openmp", toOpenMP},
	{"systemd", toSystemd}, {"kubernetes", toKubernetes}, {"env", toEnv}}

// export is a text that grows.
type export struct {
	b      *Bundle
	memory int64
	text   strings.Builder
}

// note writes a comment; text of the plan cannot end it, since names have no control characters and
// what else is printed is clipped and cleaned here.
func (e *export) note(format string, a ...any) {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, a...))
	fmt.Fprintf(&e.text, "# %s\n", clean)
}

func (e *export) line(format string, a ...any) { fmt.Fprintf(&e.text, format+"\n", a...) }

// lost notes what no other tool takes from a plan.
func (e *export) lost() {
	e.note("lost: the schedules of %s; the tool brings its own kernels", plural(len(e.b.Plan.Kernels()),
		"micro-kernel"))
	if e.b.Plan.TP() == 1 && e.b.Plan.Rounding() == "" {
		e.note("lost: bit-equal logits in any company")
	}
}

// nodes are the memory nodes of the ranks, each once; none where a rank is bound to none.
func (p *Plan) nodes() (out PUSet) {
	for _, r := range p.Ranks {
		if r.NUMANode < 0 {
			return nil
		}
		out = append(out, r.NUMANode)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hexMask is a set of PUs as an affinity mask without 0x.
func hexMask(pus PUSet) string {
	mask := new(big.Int)
	for _, pu := range pus {
		mask.SetBit(mask, pu, 1)
	}
	return mask.Text(16)
}

// toLlamaServer names the options of llama.cpp's tools/server/README.md: --threads and --cpu-mask
// are those of generation, the -batch ones those of prompts.
func toLlamaServer(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: the switch between the phases is of masks; llama.cpp keeps two thread pools for it")
	if p.TP() > 1 {
		e.note("lost: %d ranks; threads split all rows, and weights lie where they were first touched", p.TP())
	}
	e.note("--poll 50 spins and then sleeps, which comes nearest to 50 microseconds of spinning; builds with OpenMP " +
		"read neither it nor the masks: there GOMP_SPINCOUNT says how long, and GOMP_CPU_AFFINITY where, " +
		"generation first")
	words := []string{"llama-server",
		fmt.Sprintf("--threads %d --cpu-mask %s --cpu-strict 1", len(p.Decode.PUs), hexMask(p.Decode.PUs)),
		fmt.Sprintf("--threads-batch %d --cpu-mask-batch %s --cpu-strict-batch 1", len(p.Prefill.PUs),
			hexMask(p.Prefill.PUs)),
		fmt.Sprintf("--ubatch-size %d --cache-type-k %s --cache-type-v %s", p.Chunk, p.KV, p.KV)}
	if p.KV.String() == "q8_0" {
		words = append(words, "--flash-attn on") // a quantized cache of values needs it there
	}
	words = append(words, "--poll 50")
	if n := p.nodes(); len(n) > 0 && p.TP() == 1 {
		words[0] = fmt.Sprintf("numactl --membind=%s %s", n, words[0])
		words = append(words, "--numa numactl")
	} else if p.TP() > 1 {
		words = append(words, "--numa distribute")
	}
	e.line("GOMP_CPU_AFFINITY=%q %s \\\n  --model MODEL.gguf", spaced(openMPOrder(p)), strings.Join(words, " \\\n  "))
}

// openMPOrder are the PUs of both phases as libgomp hands them to threads: those of generation
// first, which is as many threads as it has.
func openMPOrder(p *Plan) PUSet {
	order := slices.Clone(p.Decode.PUs)
	for _, pu := range p.Prefill.PUs {
		if !slices.Contains(order, pu) {
			order = append(order, pu)
		}
	}
	return order
}

// spaced is a list of PUs with spaces between them, in its order.
func spaced(pus PUSet) string { return strings.Trim(fmt.Sprint([]int(pus)), "[]") }

// toVLLM names the variables of vLLM's guide to CPU: one list of PUs a rank, | between.
func toVLLM(e *export) {
	p := &e.b.Plan
	e.lost()
	if !slices.Equal(p.Prefill.PUs, p.Decode.PUs) {
		e.note("lost: vLLM has one set of PUs for both phases; this is that of prefill (decode was %s)", p.Decode.PUs)
	}
	e.note("lost: GGUF; name the model of the same weights in a format that vLLM reads")
	var ranks []string
	for _, r := range p.Ranks {
		ranks = append(ranks, r.PUs.Intersect(p.Prefill.PUs).String())
	}
	kv := max(1, (p.Model.KVBytesPerToken(p.KV)*8*4096+1<<30-1)>>30)
	e.note("the cache holds 8 requests of 4096 tokens, in whole GiB, of a type of vLLM's (the plan's is %s)",
		p.KV)
	e.line("VLLM_CPU_OMP_THREADS_BIND='%s' \\\nVLLM_CPU_KVCACHE_SPACE=%d \\", strings.Join(ranks, "|"), kv)
	e.line("vllm serve MODEL --tensor-parallel-size %d --max-num-batched-tokens %d", p.TP(), max(p.Chunk, 256))
}

// toNumactl binds any program, by numactl(8).
func toNumactl(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: one binding for the whole process, of the PUs of both phases (prefill %s, decode %s)", p.Prefill.PUs,
		p.Decode.PUs)
	if p.TP() > 1 {
		e.note("lost: which rank's memory lies on which node; pages lie where they are first touched")
	}
	bind := ""
	if n := p.nodes(); len(n) > 0 {
		bind = " --membind=" + n.String()
	} else {
		e.note("the plan binds memory to no node, so neither does this line")
	}
	e.line("numactl --physcpubind=%s%s PROGRAM", p.PUs(), bind)
}

// toOpenMP names the variables of the OpenMP 5 specification, chapter 6.
func toOpenMP(e *export) {
	p := &e.b.Plan
	e.lost()
	e.note("lost: one set of PUs for both phases; this is that of prefill (decode was %s), and no memory is bound",
		p.Decode.PUs)
	var places []string
	for _, pu := range p.Prefill.PUs {
		places = append(places, fmt.Sprintf("{%d}", pu))
	}
	e.line("export OMP_NUM_THREADS=%d", len(p.Prefill.PUs))
	e.line("export OMP_PLACES='%s'", strings.Join(places, ","))
	e.line("export OMP_PROC_BIND=close")
	e.line("export OMP_DYNAMIC=false")
	e.line("export OMP_WAIT_POLICY=passive")
}

// toSystemd is a service that serves with this plan, by systemd.exec(5) and
// systemd.resource-control(5).
func toSystemd(e *export) {
	p := &e.b.Plan
	e.note("copy the plan to /etc/sandwich/PLAN.sandwich and the model to /var/lib/sandwich/MODEL.gguf")
	e.note("nothing is lost: sandwich binds its workers itself, and the unit keeps others' settings from it")
	e.line("[Unit]\nDescription=Language model under a sandwich plan\nAfter=network.target\n")
	e.line("[Service]\nExecStart=/usr/local/bin/sandwich serve --strict --plan /etc/sandwich/PLAN.sandwich " +
		"--model /var/lib/sandwich/MODEL.gguf --listen 127.0.0.1:8080")
	e.line("DynamicUser=yes\nRestart=on-failure\nRestartPreventExitStatus=2 4")
	e.line("CPUAffinity=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	e.line("AllowedCPUs=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	if n := p.nodes(); len(n) > 0 {
		e.line("AllowedMemoryNodes=%s", strings.ReplaceAll(n.String(), ",", " "))
	}
	if e.memory > 0 {
		e.note("what serving takes by itself, and a quarter for the program and what it reads")
		e.line("MemoryMax=%dM", (e.memory+e.memory/4)>>20+64)
	}
	e.line("LimitMEMLOCK=infinity\nTimeoutStopSec=45\n\n[Install]\nWantedBy=multi-user.target")
}

// toEnv is the service configuration as variables, for scripts.
func toEnv(e *export) {
	p := &e.b.Plan
	e.lost()
	e.line("SANDWICH_PREFILL_PUS=%s", p.Prefill.PUs)
	e.line("SANDWICH_PREFILL_THREADS=%d", len(p.Prefill.PUs))
	e.line("SANDWICH_DECODE_PUS=%s", p.Decode.PUs)
	e.line("SANDWICH_DECODE_THREADS=%d", len(p.Decode.PUs))
	e.line("SANDWICH_RANKS=%d", p.TP())
	for i, r := range p.Ranks {
		e.line("SANDWICH_RANK%d_PUS=%s\nSANDWICH_RANK%d_NODE=%d", i, r.PUs, i, r.NUMANode)
	}
	e.line("SANDWICH_KV=%s\nSANDWICH_CHUNK=%d", p.KV, p.Chunk)
	e.line("SANDWICH_MEMORY_BYTES=%d", e.memory)
	e.line("SANDWICH_FINGERPRINT=%s", e.b.Host.Fingerprint())
}

// hostLabel is the fingerprint of a host as the value of a label: the first 16 digits.
func hostLabel(host *profiles.Profile) string {
	return strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16]
}

// toKubernetes is a Deployment of guaranteed QoS, for a node whose kubelet has the static CPU
// manager policy, and a NodeFeatureRule that labels the nodes that the plan is for.
func toKubernetes(e *export) {
	p := &e.b.Plan
	cpus := len(p.PUs())
	mib := (e.memory+e.memory/4)>>20 + 256
	label := hostLabel(&e.b.Host)
	e.note("lost: which PUs. The static CPU manager gives %s of its own choice, exclusively, and a plan", plural(cpus,
		"whole PU"))
	e.note("names PUs by number: it serves where a node hands out %s (nothing else runs on it), and --strict", p.PUs())
	e.note("refuses it elsewhere.")
	e.note("kubelet: --cpu-manager-policy=static --topology-manager-policy=single-numa-node")
	e.note("a node says what it is in /etc/kubernetes/node-feature-discovery/features.d/sandwich:")
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
