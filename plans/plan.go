package plans

import (
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// Compute paths of a weight (rule 6: one per weight, for every M and both phases).
const (
	ComputeF32  = "f32"  // weights widened, fused multiply-add
	ComputeInt8 = "int8" // activations quantized per block, integer dot product
	ComputeBF16 = "bf16" // pairs of bfloat16, where the CPU has the dot product; not exact
)

// Chains of additions (rule 6).
const (
	ChainWide  = "wide"  // over dequantized values
	ChainBlock = "block" // each scale block summed, then one fused multiply-add by its scale
	ChainPair  = "pair"  // each pair of k added by a dot product of bfloat16, with the rounding of the instruction
)

// Plan says what to do: which PUs work in which phase and which schedule runs which shape. It holds no measured number, so that plans can be compared as text.
type Plan struct {
	Version     int           `yaml:"version" json:"version"`
	Name        string        `yaml:"name" json:"name"`
	Fingerprint string        `yaml:"fingerprint" json:"fingerprint"` // of the host profile
	Exact       bool          `yaml:"exact" json:"exact"`             // rule 6 holds in full
	Tuned       bool          `yaml:"tuned" json:"tuned"`             // false: made by Default
	KV          string        `yaml:"kv" json:"kv"`                   // f16, f32, q8_0
	SeqMax      int           `yaml:"seq_max" json:"seq_max"`         // prefill rows that were tuned for
	BatchMax    int           `yaml:"batch_max" json:"batch_max"`     // decode rows that were tuned for
	Chunk       int           `yaml:"chunk" json:"chunk"`             // prefill chunk in tokens
	Model       ModelShape    `yaml:"model" json:"model"`
	Service     ServiceConfig `yaml:"service" json:"service"`
	Weights     []WeightPlan  `yaml:"weights" json:"weights"`
	Prefill     Phase         `yaml:"prefill" json:"prefill"`
	Decode      Phase         `yaml:"decode" json:"decode"`
}

// ServiceConfig is the service configuration of Sandwich section 5: ranks, the tensor-parallel degree, and the PUs of each phase.
type ServiceConfig struct {
	Ranks      []Rank `yaml:"ranks" json:"ranks"`
	TP         int    `yaml:"tp" json:"tp"` // ranks that share a weight; 1 on one rank
	PrefillPUs PUSet  `yaml:"prefill_pus" json:"prefill_pus"`
	DecodePUs  PUSet  `yaml:"decode_pus" json:"decode_pus"`
}

// Rank is a group of threads bound to PUs and to the memory of one NUMA node.
type Rank struct {
	PUs      PUSet `yaml:"pus" json:"pus"`
	NUMANode int   `yaml:"numa_node" json:"numa_node"` // -1: the machine has no nodes, or memory is not bound
}

// WeightPlan is what a weight keeps through both phases and all M: its compute path and its chain of additions (rule 6).
type WeightPlan struct {
	WeightKey
	Compute string `json:"compute"`
	Chain   string `json:"chain"`
}

// weightPlanDoc is the one-line form in plan.yaml.
type weightPlanDoc struct {
	Weight  keyText `yaml:"weight"`
	Compute string  `yaml:"compute"`
	Chain   string  `yaml:"chain"`
}

// MarshalYAML writes the weight on one line.
func (w WeightPlan) MarshalYAML() (any, error) {
	return profiles.FlowYAML(weightPlanDoc{keyText(w.WeightKey), w.Compute, w.Chain})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (w *WeightPlan) UnmarshalYAML(unmarshal func(any) error) error {
	var d weightPlanDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*w = WeightPlan{WeightKey(d.Weight), d.Compute, d.Chain}
	return nil
}

// Phase is one of the two plans between which the runtime switches.
type Phase struct {
	PUs    PUSet   `yaml:"pus" json:"pus"`       // active PUs
	Tables []Table `yaml:"tables" json:"tables"` // sorted by key, one for each of ModelShape.Unique
}

// Table returns the rules of weight k; false for a weight that the plan does not know.
func (p *Phase) Table(k WeightKey) (*Table, bool) {
	for i := range p.Tables {
		if p.Tables[i].WeightKey == k {
			return &p.Tables[i], true
		}
	}
	return nil, false
}

// Lookup returns the schedule of weight k for m rows: of the rule that covers m, else of the nearest one. It is false for a
// weight that the plan does not know. It allocates nothing; the executor calls it for each operator.
func (p *Phase) Lookup(k WeightKey, m int) (Schedule, bool) {
	if t, ok := p.Table(k); ok {
		return t.find(m)
	}
	return Schedule{}, false
}

// Weight returns what the plan says about a weight in both phases; false for a weight that it does not know.
func (p *Plan) Weight(k WeightKey) (WeightPlan, bool) {
	for _, w := range p.Weights {
		if w.WeightKey == k {
			return w, true
		}
	}
	return WeightPlan{}, false
}

// Arithmetic is the data type of most of the arithmetic, as ceilings name it: the compute path that is not f32 where a weight has one.
func (p *Plan) Arithmetic() string {
	for _, w := range p.Weights {
		if w.Compute != ComputeF32 {
			return w.Compute
		}
	}
	return ComputeF32
}

// Arithmetics lists the data types of all arithmetic: float32, which attention has in any case, and the other paths of the weights.
func (p *Plan) Arithmetics() []string {
	out := []string{ComputeF32}
	for _, w := range p.Weights {
		if !slices.Contains(out, w.Compute) {
			out = append(out, w.Compute)
		}
	}
	return out
}

// Widest is the widest instruction set of its kernels.
func (p *Plan) Widest() string {
	widest := microkernel.Go
	for _, k := range p.Kernels() {
		widest = max(widest, k.ISA)
	}
	return widest.String()
}

// Kernels lists the kernels of both phases, each once, in the order of the tables.
func (p *Plan) Kernels() []microkernel.Spec {
	seen := map[microkernel.Spec]bool{}
	var specs []microkernel.Spec
	for _, ph := range []*Phase{&p.Prefill, &p.Decode} {
		for _, t := range ph.Tables {
			for _, r := range t.Rules {
				if !seen[r.Schedule.Kernel] {
					seen[r.Schedule.Kernel] = true
					specs = append(specs, r.Schedule.Kernel)
				}
			}
		}
	}
	return specs
}

// PUs is the union of the PUs of both phases, sorted.
func (p *Plan) PUs() PUSet {
	all := append(slices.Clone(p.Prefill.PUs), p.Decode.PUs...)
	slices.Sort(all)
	return slices.Compact(all)
}
