package migrate

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/topotree"
)

// planV1 is plan.yaml of version 1, which stored some facts twice: the PUs of a phase, the
// tensor-parallel degree, the chains, exactness, and whether a slice is widened. Content hashes of
// version 1 manifests cover its JSON. Evidence of version 1 has the fields of version 2.
type planV1 struct {
	Version     int                `yaml:"version" json:"version"`
	Name        string             `yaml:"name" json:"name"`
	Fingerprint string             `yaml:"fingerprint" json:"fingerprint"`
	Exact       bool               `yaml:"exact" json:"exact"`
	Tuned       bool               `yaml:"tuned" json:"tuned"`
	KV          microkernel.KVType `yaml:"kv" json:"kv"`
	SeqMax      int                `yaml:"seq_max" json:"seq_max"`
	BatchMax    int                `yaml:"batch_max" json:"batch_max"`
	Chunk       int                `yaml:"chunk" json:"chunk"`
	Model       plans.ModelShape   `yaml:"model" json:"model"`
	Service     serviceV1          `yaml:"service" json:"service"`
	Weights     []weightV1         `yaml:"weights" json:"weights"`
	Prefill     phaseV1            `yaml:"prefill" json:"prefill"`
	Decode      phaseV1            `yaml:"decode" json:"decode"`
}

type serviceV1 struct {
	Ranks      []plans.Rank    `yaml:"ranks" json:"ranks"`
	TP         int             `yaml:"tp" json:"tp"`
	PrefillPUs topotree.CPUSet `yaml:"prefill_pus" json:"prefill_pus"`
	DecodePUs  topotree.CPUSet `yaml:"decode_pus" json:"decode_pus"`
}

type weightV1 struct {
	plans.WeightPlan
	Chain string `json:"chain"`
}

// UnmarshalYAML reads the one-line form of version 1.
func (w *weightV1) UnmarshalYAML(unmarshal func(any) error) error {
	var d struct {
		Weight  plans.KeyText       `yaml:"weight"`
		Compute microkernel.Compute `yaml:"compute"`
		Chain   string              `yaml:"chain"`
	}
	if err := unmarshal(&d); err != nil {
		return err
	}
	*w = weightV1{plans.WeightPlan{WeightKey: plans.WeightKey(d.Weight), Compute: d.Compute}, d.Chain}
	return nil
}

type phaseV1 struct {
	PUs    topotree.CPUSet `yaml:"pus" json:"pus"`
	Tables []tableV1       `yaml:"tables" json:"tables"`
}

type tableV1 plans.Table

// UnmarshalYAML reads rules that say themselves whether a slice is widened.
func (t *tableV1) UnmarshalYAML(unmarshal func(any) error) error {
	var d struct {
		Weight plans.KeyText `yaml:"weight"`
		Rules  []ruleV1      `yaml:"rules"`
	}
	if err := unmarshal(&d); err != nil {
		return err
	}
	*t = tableV1{WeightKey: plans.WeightKey(d.Weight)}
	for _, r := range d.Rules {
		t.Rules = append(t.Rules, plans.Rule(r))
	}
	return nil
}

type ruleV1 plans.Rule

// UnmarshalYAML reads a rule of version 1.
func (r *ruleV1) UnmarshalYAML(unmarshal func(any) error) error {
	var d struct {
		plans.RuleText `yaml:",inline"`
		Widen          bool `yaml:"widen"`
	}
	if err := unmarshal(&d); err != nil {
		return err
	}
	rule, err := d.Rule()
	rule.Schedule.Widen = d.Widen
	*r = ruleV1(rule)
	return err
}

// migrate returns the plan in the current version. Facts that version 1 stored twice must agree.
func (v *planV1) migrate() (plans.Plan, error) {
	if v.Version != 1 {
		return plans.Plan{}, fmt.Errorf("version %d in a bundle of version 1", v.Version)
	}
	p := plans.Plan{
		Version: plans.Version, Name: v.Name, Fingerprint: v.Fingerprint, Tuned: v.Tuned, KV: v.KV,
		SeqMax: v.SeqMax, BatchMax: v.BatchMax, Chunk: v.Chunk, Model: v.Model, Ranks: v.Service.Ranks,
		Prefill: v.Prefill.phase(), Decode: v.Decode.phase(),
	}
	for _, w := range v.Weights {
		p.Weights = append(p.Weights, w.WeightPlan)
	}
	return p, v.checkTwice(&p)
}

func (v *phaseV1) phase() plans.Phase {
	ph := plans.Phase{PUs: v.PUs}
	for _, t := range v.Tables {
		ph.Tables = append(ph.Tables, plans.Table(t))
	}
	return ph
}

// checkTwice compares the facts that version 1 stored twice.
func (v *planV1) checkTwice(p *plans.Plan) error {
	switch s := v.Service; {
	case s.TP != len(s.Ranks):
		return fmt.Errorf("service has the tensor-parallel degree %d on %d ranks", s.TP, len(s.Ranks))
	case !s.PrefillPUs.Equal(v.Prefill.PUs):
		return fmt.Errorf("prefill: pus are %s and service says %s", v.Prefill.PUs, s.PrefillPUs)
	case !s.DecodePUs.Equal(v.Decode.PUs):
		return fmt.Errorf("decode: pus are %s and service says %s", v.Decode.PUs, s.DecodePUs)
	case v.Exact && !p.Exact():
		return fmt.Errorf("exact is true, but %s", p.Rounding())
	}
	for _, w := range v.Weights {
		if want := plans.ChainOf(w.Compute).String(); w.Chain != want {
			return fmt.Errorf("weight %s: chain is %.40q; the compute path %s has the chain %s",
				w.WeightKey, w.Chain, w.Compute, want)
		}
	}
	return nil
}
