package candidates

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Config is one service configuration: the ranks that share each weight, and the PUs of both
// phases.
type Config struct {
	Ranks           []Rank
	Prefill, Decode topotree.CPUSet
	Origin          Origin
}

// Rank is a thread group: the PUs that work in either phase, and the memory nodes over which the
// pages of its weights and cache are interleaved. Nodes is empty on a machine without nodes.
type Rank struct {
	PUs   topotree.CPUSet
	Nodes []int
}

// Node returns the only memory node of a rank, or -1 if its pages are on several.
func (r Rank) Node() int {
	if len(r.Nodes) == 1 {
		return r.Nodes[0]
	}
	return -1
}

// Origin is the tree and the section that a configuration comes from, or the name under which it is
// always offered.
type Origin struct {
	Tree    *topotree.Tree // nil for a configuration that is always offered
	Section string         // kind of the nodes of the section: "machine", "numa", "group at depth 4"
	Variant string         // "prefill as decode", "prefill on one PU of each core"; "" for that of the section
	Always  string         // name of a configuration that is always there; "" for others
}

// Transforms returns the transforms from the machine's tree to that of the configuration.
func (o Origin) Transforms() []topotree.Transform {
	if o.Tree == nil {
		return nil
	}
	return o.Tree.Transforms()
}

// Name returns a readable name of the configuration.
func (c *Config) Name() string {
	if c.Origin.Always != "" {
		return c.Origin.Always
	}
	var words []string
	for _, x := range c.Origin.Transforms() {
		words = append(words, x.String())
	}
	if len(words) == 0 {
		words = []string{"whole tree"}
	}
	name := fmt.Sprintf("%s cut at %s, TP %d", strings.Join(words, " "), c.Origin.Section, len(c.Ranks))
	if c.Origin.Variant != "" {
		name += ", " + c.Origin.Variant
	}
	return name
}

// TP returns the tensor-parallel degree.
func (c *Config) TP() int { return len(c.Ranks) }

// Service returns the configuration in the form that a plan holds.
func (c *Config) Service() (plans.ServiceConfig, error) {
	ranks := make([]plans.Rank, len(c.Ranks))
	for i, r := range c.Ranks {
		ranks[i] = plans.Rank{PUs: r.PUs, NUMANode: r.Node()}
	}
	return plans.NewService(ranks, c.Prefill, c.Decode)
}

// Of returns the service configuration of a plan on a machine, with the memory nodes nearest to its
// ranks, in the form of a candidate that can be predicted.
func Of(p *profiles.Profile, plan *plans.Plan) (*Config, error) {
	ranks := make([]topotree.CPUSet, len(plan.Ranks))
	for i, r := range plan.Ranks {
		ranks[i] = r.PUs
	}
	c, ok := newConfig(newSite(p), ranks, plan.Prefill.PUs,
		plan.Decode.PUs, Origin{Always: plan.Name})
	if !ok {
		return nil, fmt.Errorf("plan %s: a rank has no usable PU in a phase, or no memory node", plan.Name)
	}
	return c, nil
}

// weights returns the proportions in which the model is divided: the PUs of each rank
// (plans.Plan.Shares).
func (c *Config) weights() []int {
	out := make([]int, len(c.Ranks))
	for i, r := range c.Ranks {
		out[i] = r.PUs.Count()
	}
	return out
}

// key returns a key that is equal for configurations with equal ranks and PUs, regardless of their
// names.
func (c *Config) key() string {
	var b strings.Builder
	for _, r := range c.Ranks {
		b.WriteString(r.PUs.Key())
		fmt.Fprint(&b, r.Nodes)
	}
	b.WriteString("|" + c.Prefill.Key() + "|" + c.Decode.Key())
	return b.String()
}

// newConfig divides both phases among the ranks of a section. It fails if a rank has no PU in a
// phase.
func newConfig(site *site, full []topotree.CPUSet, prefill, decode topotree.CPUSet, o Origin) (*Config, bool) {
	c := &Config{Prefill: prefill, Decode: decode, Origin: o}
	all := prefill.Union(decode)
	for _, set := range full {
		pus := set.Intersect(all)
		if !pus.Intersects(prefill) || !pus.Intersects(decode) {
			return nil, false
		}
		nodes, ok := site.nodesOf(pus)
		if !ok {
			return nil, false
		}
		c.Ranks = append(c.Ranks, Rank{pus, nodes})
	}
	slices.SortFunc(c.Ranks, func(a, b Rank) int { return a.PUs.First() - b.PUs.First() })
	return c, len(c.Ranks) > 0
}
