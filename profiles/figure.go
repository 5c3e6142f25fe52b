package profiles

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sandwich/topotree"
)

// Figure is one number about a machine and where it comes from. Exactly one of three holds: it was
// measured (N samples, N > 0), it is quoted (Source names the publication), or it is Assumed.
// Nothing assumed is ever printed as measured.
type Figure struct {
	Median float64 `yaml:"median" json:"median"`
	Min    float64 `yaml:"min,omitempty" json:"min,omitempty"`
	Max    float64 `yaml:"max,omitempty" json:"max,omitempty"`
	N      int     `yaml:"n,omitempty" json:"n,omitempty"` // samples
	// half the interquartile range over the median, 0.02 = 2 %
	Noise   float64 `yaml:"noise,omitempty" json:"noise,omitempty"`
	Unit    string  `yaml:"unit" json:"unit"` // FLOP/s, OP/s, B/s, s
	Source  string  `yaml:"source,omitempty" json:"source,omitempty"`
	Assumed bool    `yaml:"assumed,omitempty" json:"assumed,omitempty"`
}

// NewFigure summarises samples. It panics on none.
func NewFigure(unit string, samples []float64) Figure {
	s := slices.Clone(samples)
	slices.Sort(s)
	f := Figure{Median: round4(quantile(s, 0.5)), Min: round4(s[0]), Max: round4(s[len(s)-1]), N: len(s), Unit: unit}
	if f.Median != 0 {
		f.Noise = round4((quantile(s, 0.75) - quantile(s, 0.25)) / 2 / f.Median)
	}
	return f
}

// quantile interpolates linearly in sorted samples.
func quantile(sorted []float64, q float64) float64 {
	x := q * float64(len(sorted)-1)
	i := int(x)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
}

// round4 keeps four significant digits: more would be noise, and would make files unreadable.
func round4(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	mag := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	if math.IsInf(mag, 0) || mag == 0 {
		return x
	}
	return math.Round(x*mag) / mag
}

// Measured tells whether the figure was measured on the machine that it describes.
func (f Figure) Measured() bool { return f.N > 0 }

// Provenance says in a word or two where the figure comes from: "measured", "assumed", or the
// source.
func (f Figure) Provenance() string {
	switch {
	case f.Measured():
		return "measured"
	case f.Assumed:
		return "assumed"
	}
	return f.Source
}

// Check refuses figures that no machine has, naming what it is about.
func (f Figure) Check(what string) error {
	for _, v := range []float64{f.Median, f.Min, f.Max, f.Noise} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1e21 {
			return fmt.Errorf("%s: %v is no figure of a machine", what, v)
		}
	}
	if f.N < 0 || f.N > 1e6 {
		return fmt.Errorf("%s: %d samples", what, f.N)
	}
	if !f.Measured() && f.Source == "" && !f.Assumed {
		return fmt.Errorf("%s: neither measured (n), nor quoted (source), nor marked assumed", what)
	}
	if f.Measured() && (f.Source != "" || f.Assumed) {
		return fmt.Errorf("%s: measured and quoted or assumed at once", what)
	}
	return nil
}

// Kinds of ceiling.
const (
	Compute   = "compute"   // FLOP/s (f32, bf16) or OP/s (int8: two per multiply-add)
	Bandwidth = "bandwidth" // B/s read
)

// L1Loads is the level of loads from L1 that nothing asks for ahead. Other levels are read with
// prefetches, which take up the ports of loads: of L1 some machines read half as much so.
const L1Loads = "l1-loads"

// Weights is the level of weights that one PU reads from memory and multiplies one row by, asking
// for nothing ahead, and WeightsAhead the same where each line is asked for once,
// microkernel.MaxSinglePrefetch bytes ahead.
const (
	Weights      = "weights"
	WeightsAhead = "weights-ahead"
)

// WeightsShallow is the level of weights that one PU reads from memory and multiplies nine rows
// by, in blocks of k of which the next is asked for meanwhile, of half of L1; and WeightsDeep the
// same in blocks of an eighth of L2 (FewRowBlocks).
const (
	WeightsShallow = "weights-shallow"
	WeightsDeep    = "weights-deep"
)

// FewRowBlocks are the bytes of weights in the blocks that few rows may pass over, by the caches of
// a PU: those that leave most of L1 to the activations, and those that need fewer calls. The probe
// compares them (WeightsShallow, WeightsDeep), and the default heuristic choose.
func FewRowBlocks(l1, l2 int) (shallow, deep int) { return l1 / 2, l2 / 8 }

// Ceiling is one roof of the machine with a number of PUs at work.
type Ceiling struct {
	Kind string `yaml:"kind" json:"kind"`
	// "" is the vector units; else sme, amx, npu, gpu
	Device string `yaml:"device,omitempty" json:"device,omitempty"`
	ISA    string `yaml:"isa,omitempty" json:"isa,omitempty"` // compute: avx512, avx2, neon, go
	// compute: f32, f16, bf16, int8, attend-f32, ports-dot; beside a matrix unit int8-vectors,
	// int8-kernel
	Type  string `yaml:"type,omitempty" json:"type,omitempty"`
	Level string `yaml:"level,omitempty" json:"level,omitempty"` // bandwidth: l1, l1-loads, l2, l3, memory, weights, weights-ahead, -shallow, -deep
	// at work, one per core first; of a device its units
	PUs    int             `yaml:"pus" json:"pus"`
	CPUs   topotree.CPUSet `yaml:"cpus,omitempty" json:"cpus,omitzero"` // which ones; empty where no source says
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
		return fmt.Errorf("%s: the kind is neither %s nor %s", what, Compute, Bandwidth)
	}
	if c.PUs < 1 || c.PUs > MaxPU {
		return fmt.Errorf("%s: PUs out of range", what)
	}
	if !c.CPUs.IsEmpty() && c.CPUs.Count() != c.PUs {
		return fmt.Errorf("%s: its cpus are %.40s", what, c.CPUs)
	}
	return c.Figure.Check(what)
}

// Matrix is a square table between parts of the machine, row i column j: bandwidth of the cores of
// node i reading memory of node j, or the cache-line round trip between PUs i and j.
type Matrix struct {
	// NodeMatrix, LatencyMatrix, ComputeMatrix, CacheMatrix, MemoryMatrix
	Name  string      `yaml:"name" json:"name"`
	Items []int       `yaml:"items,flow" json:"items"` // OS indexes of nodes or PUs, in the order of rows and columns
	Unit  string      `yaml:"unit" json:"unit"`
	Rows  []MatrixRow `yaml:"rows" json:"rows"`
	N     int         `yaml:"n,omitempty" json:"n,omitempty"`
	Noise float64     `yaml:"noise,omitempty" json:"noise,omitempty"` // the median of Noises
	// of each value: half the interquartile range over the median
	Noises  []MatrixRow `yaml:"noises,omitempty" json:"noises,omitempty"`
	Source  string      `yaml:"source,omitempty" json:"source,omitempty"`
	Assumed bool        `yaml:"assumed,omitempty" json:"assumed,omitempty"`
}

// MatrixRow is one row of a Matrix, written on one line. 0 means not measured.
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

// MaxPU is the highest PU number that any file of ours may name: one less than topotree.MaxPUs.
const MaxPU = 16383

// Units are the devices at work, the vector units as "cpu" among others. A mixed ceiling, of more
// than one, bounds them together and is no unit beside them.
func (c Ceiling) Units() []string { return strings.Split(c.Device, "+") }

// Name says what the ceiling is of: avx512/f32, sme/f16, memory, l2.
func (c Ceiling) Name() string {
	if c.Kind == Bandwidth {
		return c.Level
	}
	if c.Device != "" {
		return c.Device + "/" + c.Type
	}
	return c.ISA + "/" + c.Type
}
