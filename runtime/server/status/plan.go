package status

import "sandwich/topotree"

// Plan describes the plan that a model is served under and how it was found. Its JSON form is
// stable.
type Plan struct {
	Model    string         `json:"model"`
	Version  string         `json:"version"`   // of the program
	Text     bool           `json:"generates"` // false: the model computes embeddings or scores
	Name     string         `json:"plan"`
	Headline string         `json:"headline"`
	Tuned    bool           `json:"tuned"`
	State    string         `json:"state"`             // how the plan was measured
	Verdict  string         `json:"verdict,omitempty"` // of plan verify
	Reasons  []string       `json:"reasons,omitempty"` // of the verdict
	CPU      string         `json:"cpu"`
	Tree     *topotree.Node `json:"topotree,omitempty"`
	Ranks    []Rank         `json:"ranks"`
	Prefill  Phase          `json:"prefill"`
	Decode   Phase          `json:"decode"`
	Assumed  []string       `json:"assumed,omitempty"` // figures of the ceilings that were not measured
	Facts    []Fact         `json:"facts"`
	Story    []Fact         `json:"story,omitempty"` // steps of the search
	Races    []Race         `json:"races,omitempty"`
	Outcome  string         `json:"outcome,omitempty"` // of the search, in a sentence
}

// Rank is a tensor-parallel part of the machine.
type Rank struct {
	PUs  topotree.CPUSet `json:"pus"`
	Node int             `json:"numa_node"` // -1: not bound to one
}

// Phase has the resources of a phase of inference.
type Phase struct {
	PUs      topotree.CPUSet `json:"pus"`
	Ceilings []Ceiling       `json:"ceilings"` // empty if the profile has none
}

// Ceiling is the rate of a phase in which every op runs at the ceiling of its arithmetic.
type Ceiling struct {
	Test string  `json:"test"`
	Rows int     `json:"rows"` // sequences of a decode step, or tokens of a prompt
	Rate float64 `json:"tokens_per_second"`
	By   string  `json:"by"` // the ceilings that bound some op
}

// Fact is a named value.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Race has the measurements of the arms of a phase, the arm of the plan first.
type Race struct {
	Phase   string `json:"phase"`
	Verdict string `json:"verdict"`
	Arms    []Arm  `json:"arms"`
}

// Arm is one configuration of a race.
type Arm struct {
	Name    string  `json:"name"`
	Outcome string  `json:"outcome"` // compared with the first arm
	Tests   []Rate  `json:"tests"`
	Gain    float64 `json:"gain"` // over the default, 0.1 for 10 %; Low and High are its interval
	Low     float64 `json:"gain_low"`
	High    float64 `json:"gain_high"`
	Rounds  int     `json:"rounds"`
}

// Rate is the median of a test.
type Rate struct {
	Test   string  `json:"test"`
	Median float64 `json:"tokens_per_second"`
}
