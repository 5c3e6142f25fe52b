package plans

import (
	"fmt"

	"sandwich/profiles"
)

// Evidence is why a plan says what it says: raw samples, noise, what was tried and rejected. Measured numbers live here and in the host profile,
// never in plan.yaml, so that two plans can be compared as text.
type Evidence struct {
	Version   int        `yaml:"version" json:"version"`
	Build     string     `yaml:"build" json:"build"`     // commit of the program that tuned
	Created   string     `yaml:"created" json:"created"` // RFC 3339, UTC
	Strategy  string     `yaml:"strategy" json:"strategy"`
	Effort    string     `yaml:"effort" json:"effort"`
	Seed      uint64     `yaml:"seed" json:"seed"`
	Budget    float64    `yaml:"budget_s" json:"budget_s"`
	Spent     float64    `yaml:"spent_s" json:"spent_s"`
	Noise     float64    `yaml:"aa_noise" json:"aa_noise"` // A/A: relative difference of two equal arms
	Trials    int        `yaml:"trials" json:"trials"`     // kernels timed
	Kernels   []Trial    `yaml:"kernels,omitempty" json:"kernels,omitempty"`
	Finalists []Arm      `yaml:"finalists,omitempty" json:"finalists,omitempty"`
	Rejected  []Rejected `yaml:"rejected,omitempty" json:"rejected,omitempty"`
}

// Trial is the winner of one (phase, weight, M).
type Trial struct {
	Phase     string `yaml:"phase" json:"phase"` // prefill or decode
	WeightKey `yaml:",inline"`
	M         int             `yaml:"m" json:"m"`
	Schedule  string          `yaml:"schedule" json:"schedule"`
	Tried     int             `yaml:"tried" json:"tried"`
	Seconds   profiles.Figure `yaml:"seconds" json:"seconds"`
}

// MarshalYAML writes a trial on one line.
func (t Trial) MarshalYAML() (any, error) {
	type plain Trial
	return profiles.FlowYAML(plain(t))
}

// Arm is one configuration measured on the real runtime, interleaved with the others.
type Arm struct {
	Name    string    `yaml:"name" json:"name"` // "winner", "default", "unpinned", or the scheme it stands for
	Test    string    `yaml:"test" json:"test"` // pp512, tg64
	Unit    string    `yaml:"unit" json:"unit"` // tokens/s
	Samples []float64 `yaml:"samples,flow" json:"samples"`
}

// MarshalYAML writes an arm on one line.
func (a Arm) MarshalYAML() (any, error) {
	type plain Arm
	return profiles.FlowYAML(plain(a))
}

// Rejected is a candidate that lost, and why.
type Rejected struct {
	Candidate string `yaml:"candidate" json:"candidate"`
	Reason    string `yaml:"reason" json:"reason"`
}

func (e *Evidence) check() error {
	if e.Version != bundleVersion {
		return fmt.Errorf("evidence has version %d; this build reads version %d", e.Version, bundleVersion)
	}
	if !(e.Budget >= 0 && e.Spent >= 0 && e.Noise >= 0 && e.Trials >= 0) {
		return fmt.Errorf("evidence has a negative budget, time, noise or number of trials")
	}
	return nil
}
