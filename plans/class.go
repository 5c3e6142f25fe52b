package plans

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Class is a worker kind: workers on some PUs that run their own schedule tables (SMEPilot section
// 4.4). Workers on PUs of no class run the main tables, whose class is empty. Speeds of classes are
// not part of a plan; they are measured on the host that runs it. heuristic.Default makes classes,
// exec.NewWorkers assigns workers to them.
type Class struct {
	Name string          `json:"name"` // as in Table.Class
	ISA  microkernel.ISA `json:"isa"`  // for operations other than products, and the widest of the kernels
	PUs  topotree.CPUSet `json:"pus"`
	Kind string          `json:"kind,omitempty"` // core type of the topology; "": any
	// An optional class does not reject hosts that lack its cores or instructions: its workers then
	// run the main tables.
	Optional bool `json:"optional,omitempty"`
}

// MainClass is the name that messages show for workers without a class.
const MainClass = "main"

// maxClasses is the maximum number of classes of a plan.
const maxClasses = 16

// classDoc is the one-line form in plan.yaml.
type classDoc struct {
	Name     string          `yaml:"name"`
	ISA      microkernel.ISA `yaml:"isa"`
	PUs      topotree.CPUSet `yaml:"pus"`
	Kind     string          `yaml:"kind,omitempty"`
	Optional bool            `yaml:"optional,omitempty"`
}

// MarshalYAML writes a class on one line.
func (c Class) MarshalYAML() (any, error) { return profiles.FlowYAML(classDoc(c)) }

// UnmarshalYAML reads what MarshalYAML writes.
func (c *Class) UnmarshalYAML(unmarshal func(any) error) error {
	var d classDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*c = Class(d)
	return nil
}

// String returns the class as `plan show` and messages show it: avx2 (avx2) on PUs 1.
func (c Class) String() string {
	text := fmt.Sprintf("%s (%s) on PUs %s", c.Name, c.ISA, c.PUs)
	if c.Kind != "" {
		text += ", cores " + c.Kind
	}
	if c.Optional {
		text += ", optional"
	}
	return text
}

// title returns the name of a table for messages.
func (t Table) title() string {
	if t.Class == "" {
		return t.WeightKey.String()
	}
	return t.WeightKey.String() + " for class " + t.Class
}
