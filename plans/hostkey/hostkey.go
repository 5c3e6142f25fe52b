// Package hostkey identifies the host and the model that a plan was made for by fields that can be
// compared one by one, so that a plan can be found among those of many hosts.
package hostkey

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/topotree/isomorph"
)

// Key identifies a host, the CPUs that a process was given there, and a model.
type Key struct {
	Arch     string
	CPUModel string
	Features string // instruction set features, sorted, separated by spaces
	Topology string // digest of the tree of all online PUs
	PUs      int    // number of online PUs
	Model    string // digest of the shape; "": unknown
	Name     string // of the model, for messages
	Subtree  string // digest of the part of the tree that the process may use
	Allowed  string // the PUs of this part, for messages
	Quota    int    // PUs that the CPU quota allows; 0: no quota, or not below the available PUs
}

// OfHost returns the key of a process on a host, with a model unless the shape is nil.
func OfHost(p *profiles.Profile, shape *plans.ModelShape) Key {
	tree := p.Machine.AsReported().Tree
	k := Key{Arch: p.Host.Arch, CPUModel: p.Host.CPUModel,
		Features: strings.Join(slices.Sorted(slices.Values(p.Host.ISA)), " "),
		Topology: tree.Digest().String(), PUs: tree.PUs(),
		Subtree: isomorph.Digest(tree, p.Allowed()).String(), Allowed: p.Allowed().String(), Quota: p.QuotaPUs()}
	if k.Quota >= p.Allowed().Count() {
		k.Quota = 0 // it does not limit these PUs
	}
	if shape != nil {
		k.Model, k.Name = shape.Digest(), shape.Name
	}
	return k
}

// OfBundle returns the key of the host and the model that a plan was made for.
func OfBundle(b *bundle.Bundle) Key { return OfHost(&b.Host, &b.Plan.Model) }

// Kind returns a short identifier of the kind of host: a hash of architecture, CPU model, features
// and topology. It does not depend on the CPUs that a process was given.
func (k Key) Kind() string {
	return short(profiles.Digest([]string{k.Arch, k.CPUModel, k.Features, k.Topology}))
}

// Tag returns the tag under which a job pushes its plan: the model's name, and hashes of its shape
// and of the host with the given CPUs. Equivalent CPUs have the same tag. A tag has at most 128
// letters, digits, underscores, dots and dashes.
func (k Key) Tag() string {
	host := short(profiles.Digest([]any{k.Arch, k.CPUModel, k.Features, k.Topology, k.Subtree, k.Quota}))
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, k.Name)
	if name = strings.TrimLeft(name, ".-"); name == "" {
		name = "model"
	}
	return fmt.Sprintf("%.60s-%.8s-%s", name, short(k.Model), host)
}

// short returns the first 16 digits of a digest.
func short(digest string) string {
	digits := strings.TrimPrefix(digest, "sha256:")
	return digits[:min(len(digits), 16)]
}
