package profiles

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sandwich/topotree"
	"sandwich/topotree/cluster"
)

// Names of the matrices that package calibrate measures.
const (
	LatencyMatrix = "pu-latency"        // ns for a cache line from PU i to PU j and back
	ComputeMatrix = "pu-contention-fma" // fraction of its multiply-add rate that a PU keeps while the other is active
	// the same for reads of 0.6 of a last-level cache: two PUs that share one do not fit
	CacheMatrix  = "pu-contention-cache"
	MemoryMatrix = "pu-contention-memory" // the same for reads of memory
	NodeMatrix   = "node-bandwidth"       // B/s that all PUs of node i read from the memory of node j
)

// Limits of a profile, above what a probe writes.
const (
	maxLatents    = 64
	maxSetFigures = 4096
)

// Latent is a clustering of PUs found in a measured matrix. It is a candidate for the group
// transform, or confirms a level of the tree.
type Latent struct {
	Matrix string            `yaml:"matrix" json:"matrix"`
	Sets   []topotree.CPUSet `yaml:"sets,flow" json:"sets"`
	// typical value between clusters divided by that within clusters
	Contrast float64 `yaml:"contrast,omitempty" json:"contrast,omitempty"`
	// difference of the two values in standard deviations of the residuals
	Effect float64 `yaml:"effect,omitempty" json:"effect,omitempty"`
	// level of the tree with the same clusters
	Known string `yaml:"known,omitempty" json:"known,omitempty"`
	// text of the transform that adds the clusters to the tree
	Group string `yaml:"group,omitempty" json:"group,omitempty"`
	Text  string `yaml:"text" json:"text"` // description in one sentence
}

// Probe records how the figures were measured.
type Probe struct {
	Mode    string  `yaml:"mode" json:"mode"` // quick, full
	Seconds float64 `yaml:"seconds" json:"seconds"`
	// the probe was interrupted; missing figures were not measured
	Partial bool `yaml:"partial,omitempty" json:"partial,omitempty"`
}

func (l Latent) check() error {
	what := fmt.Sprintf("latent structure of matrix %.40s", l.Matrix)
	for _, v := range []float64{l.Contrast, l.Effect} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%s: invalid contrast or effect %v", what, v)
		}
	}
	if len(l.Sets) == 0 || len(l.Sets) > topotree.MaxPUs {
		return fmt.Errorf("%s: invalid number of clusters %d", what, len(l.Sets))
	}
	if l.Group != "" {
		if _, err := topotree.ParseTransform(l.Group); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// checkStructure validates figures of PU sets and clusterings.
func (p *Profile) checkStructure() error {
	if len(p.Sets) > maxSetFigures || len(p.Latent) > maxLatents {
		return fmt.Errorf("%d figures of PU sets and %d clusterings; at most %d and %d are allowed",
			len(p.Sets), len(p.Latent), maxSetFigures, maxLatents)
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

// Matrix returns the matrix with a name, or nil.
func (p *Profile) Matrix(name string) *Matrix {
	i := slices.IndexFunc(p.Matrices, func(m Matrix) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Matrices[i]
}

// Groups returns the group transforms that measurements propose and the tree lacks, the largest
// effect first; an enumeration tries them first. For clusters without a stored transform it derives
// one if possible.
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

// grouping returns the transform that makes clusters of the usable PUs, or "" if there is none or
// the tree has the clusters.
func (p *Profile) grouping(sets []topotree.CPUSet) string {
	tree, err := p.Machine.Usable()
	if err != nil {
		return ""
	}
	if x := cluster.Propose(tree, cluster.Clustering{Sets: sets}).Group; x != (topotree.Transform{}) {
		return x.String()
	}
	return ""
}
