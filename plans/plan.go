package plans

import (
	"slices"

	"sandwich/microkernel"
)

// Plan says what to do: which PUs work in which phase and which schedule runs which shape. It holds
// no measured number, so that plans can be compared as text.
type Plan struct {
	Version     int                `yaml:"version" json:"version"`
	Name        string             `yaml:"name" json:"name"`
	Fingerprint string             `yaml:"fingerprint" json:"fingerprint"` // of the host profile
	Tuned       bool               `yaml:"tuned" json:"tuned"`             // false: made by plans/heuristic
	KV          microkernel.KVType `yaml:"kv" json:"kv"`                   // f16, f32, q8_0
	// what attention adds up by; absent: f32
	Attention microkernel.AttentionDot `yaml:"attention,omitempty" json:"attention,omitempty"`
	SeqMax    int                      `yaml:"seq_max" json:"seq_max"`     // prefill rows that were tuned for
	BatchMax  int                      `yaml:"batch_max" json:"batch_max"` // decode rows that were tuned for
	Chunk     int                      `yaml:"chunk" json:"chunk"`         // prefill chunk in tokens
	Model     ModelShape               `yaml:"model" json:"model"`
	Ranks     []Rank                   `yaml:"ranks" json:"ranks"`                         // they share every weight
	Classes   []Class                  `yaml:"classes,omitempty" json:"classes,omitempty"` // of unlike workers
	Weights   []WeightPlan             `yaml:"weights" json:"weights"`
	Prefill   Phase                    `yaml:"prefill" json:"prefill"`
	Decode    Phase                    `yaml:"decode" json:"decode"`
}

// Phase is one of the two plans between which the runtime switches.
type Phase struct {
	PUs    PUSet   `yaml:"pus" json:"pus"`       // active PUs
	Tables []Table `yaml:"tables" json:"tables"` // by class, the main one first, then by key
}

// Table returns the main class's rules of weight k; false for a weight that the plan does not know.
func (p *Phase) Table(k WeightKey) (*Table, bool) { return p.TableOf("", k) }

// TableOf returns the rules of weight k for a class of workers; "" is the main one.
func (p *Phase) TableOf(class string, k WeightKey) (*Table, bool) {
	for i := range p.Tables {
		if p.Tables[i].WeightKey == k && p.Tables[i].Class == class {
			return &p.Tables[i], true
		}
	}
	return nil, false
}

// Lookup returns the schedule of weight k for m rows: of the rule that covers m, else of the
// nearest one. It is false for a weight that the plan does not know. It allocates nothing; the
// executor calls it for each operator.
func (p *Phase) Lookup(k WeightKey, m int) (Schedule, bool) { return p.LookupOf("", k, m) }

// LookupOf is Lookup for a class of workers.
func (p *Phase) LookupOf(class string, k WeightKey, m int) (Schedule, bool) {
	if t, ok := p.TableOf(class, k); ok {
		return t.find(m)
	}
	return Schedule{}, false
}

// Weight returns what the plan says about a weight in both phases; false for a weight that it does
// not know.
func (p *Plan) Weight(k WeightKey) (WeightPlan, bool) {
	for _, w := range p.Weights {
		if w.WeightKey == k {
			return w, true
		}
	}
	return WeightPlan{}, false
}

// Arithmetics lists the data types of all arithmetic: float32, which attention has in any case, and
// the other paths of the weights.
func (p *Plan) Arithmetics() []string {
	out := []string{microkernel.ComputeF32.String()}
	for _, w := range p.Weights {
		if name := w.Compute.Ceiling(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Widest is the widest instruction set of its kernels.
func (p *Plan) Widest() string { return p.widestISA().String() }

func (p *Plan) widestISA() microkernel.ISA {
	widest := microkernel.Go
	for _, k := range p.Kernels() {
		widest = max(widest, k.ISA)
	}
	return widest
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
