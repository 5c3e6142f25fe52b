package profiles

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/topotree"
)

// Names of the matrices that calibrate measures.
const (
	LatencyMatrix = "pu-latency"        // ns of a cache line from PU i to PU j and back
	ComputeMatrix = "pu-contention-fma" // share of its multiply-add speed that a PU keeps while the other works
	// the same for reads of 0.6 of a last-level cache: two PUs that share one do not fit
	CacheMatrix  = "pu-contention-cache"
	MemoryMatrix = "pu-contention-memory" // the same for reads of memory
	NodeMatrix   = "node-bandwidth"       // B/s that all PUs of node i read from the memory of node j
)

// More than any probe writes is refused.
const (
	maxLatents    = 64
	maxSetFigures = 4096
)

// Latent is structure that a measured matrix shows, whether the tree knows it or not: a candidate
// for group, or the name of the level that it is.
type Latent struct {
	Matrix string            `yaml:"matrix" json:"matrix"`
	Sets   []topotree.CPUSet `yaml:"sets,flow" json:"sets"`
	// typical value between clusters over the one within
	Contrast float64 `yaml:"contrast,omitempty" json:"contrast,omitempty"`
	// the same difference in standard deviations of the residue
	Effect float64 `yaml:"effect,omitempty" json:"effect,omitempty"`
	// the level of the tree that shows it already
	Known string `yaml:"known,omitempty" json:"known,omitempty"`
	// the transform that makes it, as text
	Group string `yaml:"group,omitempty" json:"group,omitempty"`
	Text  string `yaml:"text" json:"text"` // one sentence for people
}

// Probe says how the measured figures came about.
type Probe struct {
	Mode    string  `yaml:"mode" json:"mode"` // quick, full
	Seconds float64 `yaml:"seconds" json:"seconds"`
	// it was stopped: what is missing was not measured
	Partial bool `yaml:"partial,omitempty" json:"partial,omitempty"`
}

func (l Latent) check() error {
	what := fmt.Sprintf("latent structure of matrix %.40s", l.Matrix)
	for _, v := range []float64{l.Contrast, l.Effect} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%s: %v is no contrast", what, v)
		}
	}
	if len(l.Sets) == 0 || len(l.Sets) > topotree.MaxPUs {
		return fmt.Errorf("%s: %d clusters", what, len(l.Sets))
	}
	if l.Group != "" {
		if _, err := topotree.ParseTransform(l.Group); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// checkStructure refuses what no measurement can have found.
func (p *Profile) checkStructure() error {
	if len(p.Sets) > maxSetFigures || len(p.Latent) > maxLatents {
		return fmt.Errorf("%d figures of PU sets and %d clusterings are more than any probe writes", len(p.Sets),
			len(p.Latent))
	}
	for _, f := range p.Sets {
		if err := f.check(); err != nil {
			return err
		}
	}
	for _, l := range p.Latent {
		if err := l.check(); err != nil {
			return err
		}
	}
	return nil
}

// Matrix returns the matrix of a name, nil when there is none.
func (p *Profile) Matrix(name string) *Matrix {
	i := slices.IndexFunc(p.Matrices, func(m Matrix) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Matrices[i]
}

// Groups lists the group transforms that measurements propose and the tree does not show yet, the
// best supported first: what an enumeration tries first. Clusters that nobody wrote a transform for
// get the one that makes them, if there is one.
func (p *Profile) Groups() []topotree.Transform {
	found := slices.Clone(p.Latent)
	slices.SortStableFunc(found, func(a, b Latent) int { return cmp.Compare(b.Effect, a.Effect) })
	var out []topotree.Transform
	for _, l := range found {
		if l.Group == "" && l.Known == "" {
			l.Group = p.grouping(l.Sets)
		}
		if x, err := topotree.ParseTransform(l.Group); err == nil && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// grouping is the transform that makes clusters out of the PUs that may be used, "" where none does
// or the tree shows them.
func (p *Profile) grouping(sets []topotree.CPUSet) string {
	tree, err := p.Machine.Usable()
	if err != nil {
		return ""
	}
	if x := topotree.Propose(tree, topotree.Clustering{Sets: sets}).Group; x != (topotree.Transform{}) {
		return x.String()
	}
	return ""
}

// treeDigest is the digest of the machine as the system describes it: colors that a measurement
// gave do not make it another host.
func (p *Profile) treeDigest() string {
	if len(p.Machine.Measured) > 0 {
		if plain, err := p.Machine.WithMeasured(nil); err == nil {
			return plain.Tree.Digest().String()
		}
	}
	return p.Machine.Tree.Digest().String()
}
