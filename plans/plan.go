package plans

import (
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Plan assigns PUs to phases and schedules to shapes. It holds no measured number, so that plans
// can be compared as text.
type Plan struct {
	Version     int                `yaml:"version" json:"version"`
	Name        string             `yaml:"name" json:"name"`
	Fingerprint string             `yaml:"fingerprint" json:"fingerprint"` // of the host
	Tuned       bool               `yaml:"tuned" json:"tuned"`             // false: made by plans/heuristic
	KV          microkernel.KVType `yaml:"kv" json:"kv"`                   // f16, f32, q8_0
	// dot product of attention; absent: f32
	Attention microkernel.AttentionDot `yaml:"attention,omitempty" json:"attention,omitempty"`
	// largest number of prefill rows that was tuned
	SeqMax int `yaml:"seq_max" json:"seq_max"`
	// largest number of decode rows that was tuned
	BatchMax int        `yaml:"batch_max" json:"batch_max"`
	Chunk    int        `yaml:"chunk" json:"chunk"` // prefill chunk in tokens
	Model    ModelShape `yaml:"model" json:"model"`
	// tensor-parallel; they divide every weight
	Ranks   []Rank       `yaml:"ranks" json:"ranks"`
	Classes []Class      `yaml:"classes,omitempty" json:"classes,omitempty"` // heterogeneous workers
	Weights []WeightPlan `yaml:"weights" json:"weights"`
	Prefill Phase        `yaml:"prefill" json:"prefill"`
	Decode  Phase        `yaml:"decode" json:"decode"`
	// ops on devices, in the order of the phases; absent: every op runs on the cores
	Placement []Placement `yaml:"placement,omitempty" json:"placement,omitempty"`
}

// Phase holds the PUs and schedules of prefill or decode, between which the runtime switches.
type Phase struct {
	PUs    topotree.CPUSet `yaml:"pus" json:"pus"`       // active PUs
	Tables []Table         `yaml:"tables" json:"tables"` // by class, the main one first, then by key
}

// Table returns the main class's table of weight k, and whether there is one.
func (p *Phase) Table(k WeightKey) (*Table, bool) { return p.TableOf("", k) }

// TableOf returns the table of weight k for a class of workers, and whether there is one. The main
// class is "".
func (p *Phase) TableOf(class string, k WeightKey) (*Table, bool) {
	for i := range p.Tables {
		if p.Tables[i].WeightKey == k && p.Tables[i].Class == class {
			return &p.Tables[i], true
		}
	}
	return nil, false
}

// Lookup returns the schedule of weight k for m rows: that of the rule that covers m, else of the
// nearest rule. It returns false for a weight without a table. It does not allocate; the executor
// calls it for each operator.
func (p *Phase) Lookup(k WeightKey, m int) (Schedule, bool) { return p.LookupOf("", k, m) }

// LookupOf returns the schedule of weight k for m rows on workers of a class; see Lookup.
func (p *Phase) LookupOf(class string, k WeightKey, m int) (Schedule, bool) {
	if t, ok := p.TableOf(class, k); ok {
		return t.Lookup(m)
	}
	return Schedule{}, false
}

// Weight returns the entry of a weight for both phases, and whether there is one.
func (p *Plan) Weight(k WeightKey) (WeightPlan, bool) {
	for _, w := range p.Weights {
		if w.WeightKey == k {
			return w, true
		}
	}
	return WeightPlan{}, false
}

// Arithmetics returns the data types of all arithmetic: float32, which attention always uses, and
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

// Widest returns the name of the widest instruction set of the plan's kernels.
func (p *Plan) Widest() string { return p.WidestISA().String() }

// WidestISA returns the widest instruction set of the plan's kernels.
func (p *Plan) WidestISA() microkernel.ISA {
	widest := microkernel.Go
	for _, k := range p.Kernels() {
		widest = max(widest, k.ISA)
	}
	return widest
}

// Kernels returns the kernels of both phases without duplicates, in the order of the tables.
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

// PUs returns the PUs that work in at least one phase.
func (p *Plan) PUs() topotree.CPUSet { return p.Prefill.PUs.Union(p.Decode.PUs) }

// planDoc is plan.yaml with its reserved fields.
type planDoc struct {
	plainPlan  `yaml:",inline"`
	SecondCopy int64 `yaml:"second_copy,omitempty"` // bytes of weights kept in a second layout; absent: 0
}

type plainPlan Plan

// UnmarshalYAML reads a plan of the current version.
func (p *Plan) UnmarshalYAML(unmarshal func(any) error) error {
	var d planDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	placement, err := placementOf(d.Placement)
	if err != nil {
		return err
	}
	if err := CheckSecondCopy(d.SecondCopy); err != nil {
		return err
	}
	*p = Plan(d.plainPlan)
	p.Placement = placement
	return nil
}

type namedPhase struct {
	name  string
	phase *Phase
}

func (p *Plan) phases() [2]namedPhase {
	return [2]namedPhase{{phase.Prefill.String(), &p.Prefill}, {phase.Decode.String(), &p.Decode}}
}

// Digest returns the hash of the content of plan.yaml. Plans with equal content have equal digests
// whatever their formatting.
func (p *Plan) Digest() string { return profiles.Digest(p) }
