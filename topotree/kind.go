package topotree

import "fmt"

// Kind is what a node of a tree stands for.
type Kind uint8

// The kinds, in the nesting order that most machines have. The builder reorders levels where a
// machine differs. KindGroup is a latent structure: made by group, or a Group that hwloc could not
// name.
const (
	KindMachine Kind = iota
	KindPackage
	KindDie
	KindNUMA
	KindL4
	KindL3
	KindGroup
	KindCluster
	KindL2
	KindCore
	KindPU
	numKinds
)

var kindNames = [numKinds]string{"machine", "package", "die", "numa", "l4", "l3", "group", "cluster", "l2",
	"core", "pu"}

// String returns the name used in JSON, YAML and text.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind reads a name that String wrote.
func ParseKind(text string) (Kind, error) {
	for k, name := range kindNames {
		if name == text {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("%q is not a kind of node: one of %v", clip(text), kindNames)
}

// MarshalText writes the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := ParseKind(string(text))
	if err != nil {
		return err
	}
	*k = v
	return nil
}

func (k Kind) IsCache() bool { return k == KindL4 || k == KindL3 || k == KindL2 }
