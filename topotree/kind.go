package topotree

import (
	"fmt"

	"sandwich/internal/message"
)

// Kind is the kind of a tree node.
type Kind uint8

// Kinds of nodes, in the usual nesting order; the builder reorders levels if a machine differs.
// KindGroup is a node made by group, or a Group of hwloc without a known type.
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

// ParseKind parses the result of String.
func ParseKind(text string) (Kind, error) {
	for k, name := range kindNames {
		if name == text {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown kind of node %q; use one of %v", message.Clip(text, 60), kindNames)
}

// MarshalText returns the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the name.
func (k *Kind) UnmarshalText(text []byte) error {
	v, err := ParseKind(string(text))
	if err != nil {
		return err
	}
	*k = v
	return nil
}

// IsCache reports whether objects of the kind are caches of L2 or larger.
func (k Kind) IsCache() bool { return k == KindL4 || k == KindL3 || k == KindL2 }

// CacheKind maps a cache level to a kind. L1 caches belong to a core and form no tree level.
func CacheKind(level int) (Kind, bool) {
	switch level {
	case 2:
		return KindL2, true
	case 3:
		return KindL3, true
	case 4:
		return KindL4, true
	}
	return 0, false
}
