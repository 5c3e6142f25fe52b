// Package export translates plans into the configuration of other tools.
package export

import (
	"fmt"
	"math/big"
	"strings"

	"sandwich/internal/message"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/export/sheet"
	"sandwich/topotree"
)

// File is an exported file.
type File struct {
	Name string
	Text string
}

// Files translates the service configuration of a plan into the configuration of another tool, with
// comments that name what the tool cannot express.
func Files(b *bundle.Bundle, target string, o Options) ([]File, error) {
	for _, t := range exports {
		if t.name == target {
			return t.write(&source{b, o})
		}
	}
	return nil, fmt.Errorf("unknown export target %.40q; use one of %s", target, strings.Join(Targets(), ", "))
}

// Targets returns the names of the targets of Files.
func Targets() (names []string) {
	for _, t := range exports {
		names = append(names, t.name)
	}
	return names
}

// exports lists the targets of Files in the order of the help text.
var exports = []struct {
	name  string
	write func(s *source) ([]File, error)
}{
	{"llama-server", one("llama-server.sh", toLlamaServer)}, {"vllm", one("vllm.sh", toVLLM)},
	{"numactl", one("numactl.sh", toNumactl)}, {"openmp", one("openmp.sh", toOpenMP)},
	{"systemd", one("sandwich.service", toSystemd)}, {"env", one("sandwich.env", toEnv)},
	{"haproxy", toHAProxy}, {"slurm", toSlurm}, {"kubernetes", toKubernetes}, {"llm-d", toLLMD},
}

// source is the input of an export.
type source struct {
	b *bundle.Bundle
	o Options
}

// sheet returns a file that starts with the name of the plan.
func (s *source) sheet() *sheet.Sheet {
	var out sheet.Sheet
	out.Note("plan %s (%s), for %s", message.Clip(s.b.Plan.Name, 60), s.b.State(),
		message.Clip(s.b.Host.Host.CPUModel, 60))
	return &out
}

// export builds the text of a target that is one file.
type export struct {
	*sheet.Sheet
	b      *bundle.Bundle
	memory int64
}

// one returns the function of a target that is one file.
func one(name string, write func(e *export)) func(s *source) ([]File, error) {
	return func(s *source) ([]File, error) {
		e := export{s.sheet(), s.b, s.o.Memory}
		write(&e)
		return []File{{name, e.String()}}, nil
	}
}

// lost writes comments on the properties of a plan that no other tool keeps.
func (e *export) lost() {
	e.Note("lost: the schedules of %s; the tool uses its own kernels", message.Plural(len(e.b.Plan.Kernels()),
		"micro-kernel"))
	if e.b.Plan.TP() == 1 && e.b.Plan.Rounding() == "" {
		e.Note("lost: batch-invariant logits")
	}
	if text := e.b.Plan.PlacementText(); text != "" {
		e.Note("lost: %s", text)
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
	e.Note("lost: the hot switch between the phases; llama.cpp keeps a thread pool for each phase")
	if p.TP() > 1 {
		e.Note("lost: %d ranks; threads split all rows, and the kernel places weights on first touch", p.TP())
	}
	e.Note("--poll 50 spins and then sleeps, which is closest to 50 microseconds of spinning; builds with OpenMP " +
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
	e.Line("GOMP_CPU_AFFINITY=%q %s \\\n  --model MODEL.gguf", spaced(openMPOrder(p)), strings.Join(words, " \\\n  "))
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
		e.Note("lost: vLLM has one set of PUs for both phases; these are the PUs of prefill (decode used %s)",
			p.Decode.PUs)
	}
	e.Note("lost: GGUF; use the same model in a format that vLLM reads")
	var ranks []string
	for _, r := range p.Ranks {
		ranks = append(ranks, r.PUs.Intersect(p.Prefill.PUs).String())
	}
	kv := max(1, (p.Model.KVBytesPerToken(p.KV)*8*4096+1<<30-1)>>30)
	e.Note("the cache size is for 8 requests of 4096 tokens, in GiB, in vLLM's cache type (the plan uses %s)",
		p.KV)
	e.Line("VLLM_CPU_OMP_THREADS_BIND='%s' \\\nVLLM_CPU_KVCACHE_SPACE=%d \\", strings.Join(ranks, "|"), kv)
	e.Line("vllm serve MODEL --tensor-parallel-size %d --max-num-batched-tokens %d", p.TP(), max(p.Chunk, 256))
}

// toNumactl writes a numactl(8) command that binds any program.
func toNumactl(e *export) {
	p := &e.b.Plan
	e.lost()
	e.Note("lost: the whole process is bound to the PUs of both phases (prefill %s, decode %s)", p.Prefill.PUs,
		p.Decode.PUs)
	if p.TP() > 1 {
		e.Note("lost: the memory node of each rank; the kernel places pages on first touch")
	}
	bind := ""
	if n := nodesOf(p); !n.IsEmpty() {
		bind = " --membind=" + n.String()
	} else {
		e.Note("the plan does not bind memory to a node")
	}
	e.Line("numactl --physcpubind=%s%s PROGRAM", p.PUs(), bind)
}

// toOpenMP writes variables of the OpenMP 5 specification, chapter 6.
func toOpenMP(e *export) {
	p := &e.b.Plan
	e.lost()
	e.Note("lost: separate PUs for each phase; these are the PUs of prefill (decode used %s); memory is not bound",
		p.Decode.PUs)
	var places []string
	for pu := range p.Prefill.PUs.All() {
		places = append(places, fmt.Sprintf("{%d}", pu))
	}
	e.Line("export OMP_NUM_THREADS=%d", p.Prefill.PUs.Count())
	e.Line("export OMP_PLACES='%s'", strings.Join(places, ","))
	e.Line("export OMP_PROC_BIND=close")
	e.Line("export OMP_DYNAMIC=false")
	e.Line("export OMP_WAIT_POLICY=passive")
}

// toSystemd writes a unit that serves with this plan, see systemd.exec(5) and
// systemd.resource-control(5).
func toSystemd(e *export) {
	p := &e.b.Plan
	e.Note("copy the plan to /etc/sandwich/PLAN.sandwich and the model to /var/lib/sandwich/MODEL.gguf")
	e.Note("nothing is lost: sandwich binds its workers itself; the unit only limits what it may use")
	e.Line("[Unit]\nDescription=Language model under a sandwich plan\nAfter=network.target\n")
	e.Line("[Service]\nExecStart=/usr/local/bin/sandwich serve --strict --plan /etc/sandwich/PLAN.sandwich " +
		"--model /var/lib/sandwich/MODEL.gguf --listen 127.0.0.1:8080")
	e.Line("DynamicUser=yes\nRestart=on-failure\nRestartPreventExitStatus=2 4")
	e.Line("CPUAffinity=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	e.Line("AllowedCPUs=%s", strings.ReplaceAll(p.PUs().String(), ",", " "))
	if n := nodesOf(p); !n.IsEmpty() {
		e.Line("AllowedMemoryNodes=%s", strings.ReplaceAll(n.String(), ",", " "))
	}
	if e.memory > 0 {
		e.Note("memory that serving needs, plus a quarter for the program and the page cache")
		e.Line("MemoryMax=%dM", (e.memory+e.memory/4)>>20+64)
	}
	e.Line("LimitMEMLOCK=infinity\nTimeoutStopSec=45\n\n[Install]\nWantedBy=multi-user.target")
}

// toEnv writes the service configuration as shell variables.
func toEnv(e *export) {
	p := &e.b.Plan
	e.lost()
	e.Line("SANDWICH_PREFILL_PUS=%s", p.Prefill.PUs)
	e.Line("SANDWICH_PREFILL_THREADS=%d", p.Prefill.PUs.Count())
	e.Line("SANDWICH_DECODE_PUS=%s", p.Decode.PUs)
	e.Line("SANDWICH_DECODE_THREADS=%d", p.Decode.PUs.Count())
	e.Line("SANDWICH_RANKS=%d", p.TP())
	for i, r := range p.Ranks {
		e.Line("SANDWICH_RANK%d_PUS=%s\nSANDWICH_RANK%d_NODE=%d", i, r.PUs, i, r.NUMANode)
	}
	e.Line("SANDWICH_KV=%s\nSANDWICH_CHUNK=%d", p.KV, p.Chunk)
	e.Line("SANDWICH_MEMORY_BYTES=%d", e.memory)
	e.Line("SANDWICH_FINGERPRINT=%s", e.b.Host.Fingerprint())
}
