package profiles

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sandwich/internal/num"
	"sandwich/topotree"
)

// Figure is a number about a machine and its origin. Exactly one holds: it was measured (N > 0
// samples), it is quoted (Source names the publication), or it is Assumed.
type Figure struct {
	Median float64 `yaml:"median" json:"median"`
	Min    float64 `yaml:"min,omitempty" json:"min,omitempty"`
	Max    float64 `yaml:"max,omitempty" json:"max,omitempty"`
	N      int     `yaml:"n,omitempty" json:"n,omitempty"` // samples
	// half the interquartile range divided by the median: 0.02 for 2 %
	Noise   float64 `yaml:"noise,omitempty" json:"noise,omitempty"`
	Unit    string  `yaml:"unit" json:"unit"` // FLOP/s, OP/s, B/s, s
	Source  string  `yaml:"source,omitempty" json:"source,omitempty"`
	Assumed bool    `yaml:"assumed,omitempty" json:"assumed,omitempty"`
}

// NewFigure summarizes samples. It panics if there are none.
func NewFigure(unit string, samples []float64) Figure {
	s := slices.Clone(samples)
	slices.Sort(s)
	f := Figure{Median: round4(quantile(s, 0.5)), Min: round4(s[0]), Max: round4(s[len(s)-1]), N: len(s), Unit: unit}
	if f.Median != 0 {
		f.Noise = round4((quantile(s, 0.75) - quantile(s, 0.25)) / 2 / f.Median)
	}
	return f
}

// quantile interpolates linearly between sorted samples.
func quantile(sorted []float64, q float64) float64 {
	x := q * float64(len(sorted)-1)
	i := int(x)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
}

// round4 is num.Significant, but keeps infinities and NaN, which Check rejects.
func round4(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	return num.Significant(x)
}

// Measured reports whether the figure was measured on the machine that it describes.
func (f Figure) Measured() bool { return f.N > 0 }

// Provenance returns the origin of the figure: "measured", "assumed", or the source.
func (f Figure) Provenance() string {
	switch {
	case f.Measured():
		return "measured"
	case f.Assumed:
		return "assumed"
	}
	return f.Source
}

// Check validates the figure. what names it in the error.
func (f Figure) Check(what string) error {
	for _, v := range []float64{f.Median, f.Min, f.Max, f.Noise} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1e21 {
			return fmt.Errorf("%s: invalid value %v", what, v)
		}
	}
	if f.N < 0 || f.N > 1e6 {
		return fmt.Errorf("%s: invalid number of samples %d", what, f.N)
	}
	if !f.Measured() && f.Source == "" && !f.Assumed {
		return fmt.Errorf("%s: the figure has no origin; set n, source or assumed", what)
	}
	if f.Measured() && (f.Source != "" || f.Assumed) {
		return fmt.Errorf("%s: the figure is measured and also quoted or assumed; keep one", what)
	}
	return nil
}

// Kinds of ceiling.
const (
	Compute   = "compute"   // FLOP/s (f32, bf16) or OP/s (int8), two per multiply-add
	Bandwidth = "bandwidth" // B/s read
)

// L1Loads is the level of loads from L1 without prefetches. Other levels are read with prefetches,
// which occupy load ports and halve the rate from L1 on some machines.
const L1Loads = "l1-loads"

// Weights is the level of weights that one PU reads from memory and multiplies by one row, without
// prefetches. WeightsAhead is the same with one prefetch of each line,
// microkernel.MaxSinglePrefetch bytes ahead.
const (
	Weights      = "weights"
	WeightsAhead = "weights-ahead"
)

// WeightsShallow is the level of weights that one PU reads from memory and multiplies by nine rows
// in blocks of half of L1, with a prefetch of the next block. WeightsDeep is the same in blocks of
// an eighth of L2 (FewRowBlocks).
const (
	WeightsShallow = "weights-shallow"
	WeightsDeep    = "weights-deep"
)

// FewRowBlocks returns the bytes of two sizes of blocks of weights for few rows: shallow ones leave
// most of L1 to the activations, deep ones need fewer calls. l1 and l2 are the cache sizes of a PU
// in bytes. The probe compares both, and plans/heuristic chooses by its figures.
func FewRowBlocks(l1, l2 int) (shallow, deep int) { return l1 / 2, l2 / 8 }

// Ceiling is one ceiling of the roofline model with a number of active PUs.
type Ceiling struct {
	Kind string `yaml:"kind" json:"kind"`
	// "": the vector units; else sme, amx, npu, gpu
	Device string `yaml:"device,omitempty" json:"device,omitempty"`
	ISA    string `yaml:"isa,omitempty" json:"isa,omitempty"` // compute: avx512, avx2, neon, go
	// compute: f32, f16, bf16, int8, attend-f32, ports-dot; on CPUs with a matrix unit also
	// int8-vectors, int8-kernel
	Type string `yaml:"type,omitempty" json:"type,omitempty"`
	// bandwidth: l1, l1-loads, l2, l3, memory, weights, weights-ahead, -shallow, -deep
	Level string `yaml:"level,omitempty" json:"level,omitempty"`
	// number of active PUs, one per core first; for a device its units
	PUs    int             `yaml:"pus" json:"pus"`
	CPUs   topotree.CPUSet `yaml:"cpus,omitempty" json:"cpus,omitzero"` // the active PUs; empty if unknown
	Figure `yaml:",inline"`
}

// MarshalYAML writes a ceiling on one line.
func (c Ceiling) MarshalYAML() (any, error) {
	type plain Ceiling
	return FlowYAML(plain(c))
}

var _ yaml.Marshaler = Ceiling{}

func (c Ceiling) check() error {
	what := fmt.Sprintf("ceiling %s %s%s%s%s with %d PUs", c.Kind, c.Device, c.ISA, c.Type, c.Level, c.PUs)
	if c.Kind != Compute && c.Kind != Bandwidth {
		return fmt.Errorf("%s: unknown kind; use %s or %s", what, Compute, Bandwidth)
	}
	if c.PUs < 1 || c.PUs > MaxPU {
		return fmt.Errorf("%s: pus is not in 1..%d", what, MaxPU)
	}
	if !c.CPUs.IsEmpty() && c.CPUs.Count() != c.PUs {
		return fmt.Errorf("%s: cpus lists another number of PUs: %.40s", what, c.CPUs)
	}
	return c.Figure.Check(what)
}

// Matrix is a square table between parts of the machine: value [i][j] is, for example, the
// bandwidth of the cores of node i when they read the memory of node j, or the round trip of a
// cache line between PUs i and j.
type Matrix struct {
	// NodeMatrix, LatencyMatrix, ComputeMatrix, CacheMatrix, MemoryMatrix
	Name  string      `yaml:"name" json:"name"`
	Items []int       `yaml:"items,flow" json:"items"` // OS indexes of nodes or PUs, in the order of rows and columns
	Unit  string      `yaml:"unit" json:"unit"`
	Rows  []MatrixRow `yaml:"rows" json:"rows"`
	N     int         `yaml:"n,omitempty" json:"n,omitempty"`
	Noise float64     `yaml:"noise,omitempty" json:"noise,omitempty"` // median of Noises
	// half the interquartile range of each value divided by its median
	Noises  []MatrixRow `yaml:"noises,omitempty" json:"noises,omitempty"`
	Source  string      `yaml:"source,omitempty" json:"source,omitempty"`
	Assumed bool        `yaml:"assumed,omitempty" json:"assumed,omitempty"`
}

// MatrixRow is one row of a Matrix. 0 means not measured.
type MatrixRow []float64

// MarshalYAML writes the row on one line.
func (r MatrixRow) MarshalYAML() (any, error) { return FlowYAML([]float64(r)) }

func (m Matrix) check() error {
	f := Figure{Noise: m.Noise, N: m.N, Source: m.Source, Assumed: m.Assumed}
	if err := f.Check("matrix " + m.Name); err != nil {
		return err
	}
	if err := m.checkRows(m.Rows); err != nil || len(m.Noises) == 0 {
		return err
	}
	return m.checkRows(m.Noises)
}

func (m Matrix) checkRows(rows []MatrixRow) error {
	if len(rows) != len(m.Items) {
		return fmt.Errorf("matrix %s: %d rows for %d items", m.Name, len(rows), len(m.Items))
	}
	for i, row := range rows {
		if len(row) != len(m.Items) {
			return fmt.Errorf("matrix %s: row %d has %d values for %d items", m.Name, i, len(row), len(m.Items))
		}
		for _, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				return fmt.Errorf("matrix %s: row %d holds %v", m.Name, i, v)
			}
		}
	}
	return nil
}

// MaxPU is the highest PU index in any file: topotree.MaxPUs - 1.
const MaxPU = 16383

// Units returns the active devices, one "" for the vector units. A ceiling of several devices
// bounds them together.
func (c Ceiling) Units() []string { return strings.Split(c.Device, "+") }

// Name returns the subject of the ceiling: avx512/f32, sme/f16, memory, l2.
func (c Ceiling) Name() string {
	if c.Kind == Bandwidth {
		return c.Level
	}
	if c.Device != "" {
		return c.Device + "/" + c.Type
	}
	return c.ISA + "/" + c.Type
}
