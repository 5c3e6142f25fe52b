package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sandwich/plans"
	"sandwich/plans/evidence"
)

// planV2 is plan.yaml of version 2, which had no placement.
type planV2 plainV2

// plainV2 is a Plan without its methods.
type plainV2 plans.Plan

// UnmarshalYAML reads a plan of version 2 with its reserved field.
func (p *planV2) UnmarshalYAML(unmarshal func(any) error) error {
	var d struct {
		plainV2    `yaml:",inline"`
		SecondCopy int64 `yaml:"second_copy"`
	}
	if err := unmarshal(&d); err != nil {
		return err
	}
	if d.Placement != nil {
		return fmt.Errorf("unknown field placement: plans of version 2 have none")
	}
	*p = planV2(d.plainV2)
	return plans.CheckSecondCopy(d.SecondCopy)
}

func (p *planV2) migrate() (plans.Plan, error) {
	if p.Version != 2 {
		return plans.Plan{}, fmt.Errorf("plan.yaml has version %d in a bundle of version 2", p.Version)
	}
	out := plans.Plan(*p)
	out.Version = plans.Version
	return out, nil
}

// evidenceV2 is evidence.yaml of versions 1 and 2, which spelled search_trace "road" and
// distinct_costs "unlike_costs".
type evidenceV2 struct {
	evidence.Evidence `yaml:",inline"`
	Road              *traceV2 `yaml:"road,omitempty"`
}

type traceV2 struct {
	evidence.Trace `yaml:",inline"`
	UnlikeCosts    int `yaml:"unlike_costs"`
}

// migrate returns the evidence in the current version. Keys of version 3 are refused.
func (e *evidenceV2) migrate() (evidence.Evidence, error) {
	out := e.Evidence
	if out.Trace != nil || e.Road != nil && e.Road.DistinctCosts != 0 {
		return out, fmt.Errorf("evidence of version %d has keys of version %d", e.Version, plans.Version)
	}
	out.Version = plans.Version
	if e.Road != nil {
		trace := e.Road.Trace
		trace.DistinctCosts = e.Road.UnlikeCosts
		out.Trace = &trace
	}
	return out, nil
}

// MarshalJSON writes the fields as versions 1 and 2 spelled them, for content hashes.
func (e *evidenceV2) MarshalJSON() ([]byte, error) {
	return withKeys(&e.Evidence, map[string]any{"search_trace": nil, "road": e.Road})
}

// MarshalJSON writes the fields as versions 1 and 2 spelled them.
func (t *traceV2) MarshalJSON() ([]byte, error) {
	return withKeys(&t.Trace, map[string]any{"distinct_costs": nil, "unlike_costs": t.UnlikeCosts})
}

// withKeys returns the JSON object of v with some keys replaced; a nil value removes the key.
func withKeys(v any, keys map[string]any) ([]byte, error) {
	text, err := marshalJSON(v)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	for key, value := range keys {
		if trace, ok := value.(*traceV2); value == nil || ok && trace == nil {
			delete(object, key)
		} else if object[key], err = marshalJSON(value); err != nil {
			return nil, err
		}
	}
	return marshalJSON(object)
}

// marshalJSON is json.Marshal without HTML escapes, as canonical JSON needs it.
func marshalJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
