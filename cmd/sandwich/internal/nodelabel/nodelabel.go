// Package nodelabel describes a host by labels of Kubernetes nodes and by features of Slurm nodes,
// so that jobs can select the kind of host that a plan was made for.
package nodelabel

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/plans/hostkey"
	"sandwich/profiles"
)

// prefix is the prefix of the keys of Kubernetes labels.
const prefix = "sandwich.dev/"

// maxPart is the maximum length of the name and of the value of a Kubernetes label. It also limits
// Slurm features.
const maxPart = 63

// property is a property of a host. A feature has no value in Slurm.
type property struct {
	name, value string
	feature     bool
}

// properties returns the properties of a host in their order.
func properties(p *profiles.Profile) []property {
	key := hostkey.OfHost(p, nil)
	var out []property
	for _, x := range [][2]string{{"kind", key.Kind()},
		{"host", strings.TrimPrefix(p.Fingerprint(), "sha256:")[:16]},
		{"arch", key.Arch},
		{"cpu", strings.ToLower(key.CPUModel)},
		{"topology", key.Topology},
		{"pus", fmt.Sprint(key.PUs)},
		{"nodes", fmt.Sprint(max(1, len(p.Machine.Localities())))}} {
		if part(x[1], '-', "") != "" {
			out = append(out, property{x[0], x[1], false})
		}
	}
	for _, f := range strings.Fields(key.Features) {
		if part(f, '-', "") != "" {
			out = append(out, property{"isa-" + strings.ToLower(f), "true", true})
		}
	}
	return out
}

// Kubernetes returns the labels of a node as KEY=VALUE, the arguments of `kubectl label node`.
func Kubernetes(p *profiles.Profile) (out []string) {
	for _, x := range properties(p) {
		out = append(out, prefix+part(x.name, '-', "._-")+"="+part(x.value, '-', "._-"))
	}
	return compact(out)
}

// Slurm returns the features of a node, for Features= in slurm.conf and --constraint. They begin
// with a letter and have lower-case letters, digits and underscores only, since other characters
// are operators of constraints.
func Slurm(p *profiles.Profile) (out []string) {
	for _, x := range properties(p) {
		name := x.name
		if !x.feature {
			name += "_" + x.value
		}
		out = append(out, part("sandwich_"+strings.ToLower(name), '_', "_"))
	}
	return compact(out)
}

// compact removes repeated elements and keeps the order.
func compact(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// part returns text with runs of characters other than ASCII letters, digits and extra ones
// replaced by one replacement, at most maxPart long, which begins and ends with a letter or digit.
func part(text string, replacement rune, extra string) string {
	var b strings.Builder
	replaced := false
	for _, r := range text {
		valid := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(extra, r)
		switch {
		case valid:
			b.WriteRune(r)
		case !replaced:
			b.WriteRune(replacement)
		}
		replaced = !valid
	}
	trim := func(s string) string { return strings.Trim(s, "._-") }
	out := trim(b.String())
	return trim(out[:min(len(out), maxPart)])
}
