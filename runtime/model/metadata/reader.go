// Package metadata reads and writes the GGUF keys of a configuration.
package metadata

import (
	"fmt"
	"math"
	"slices"

	"sandwich/runtime/model"
)

// Reader reads the keys of one architecture from a GGUF file, or from the values of a plan. It
// collects errors, so that a configuration is read to the end and all errors are reported.
type Reader struct {
	source source
	arch   string
	from   string // fromFile or fromPlan
	errs   []error
}

// Fail adds an error.
func (m *Reader) Fail(format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf(format, args...))
}

// missingKeyHint returns the advice for a source without a required key.
func (m *Reader) missingKeyHint() string {
	if m.from == fromPlan {
		return "an earlier version wrote it, make a new one with `sandwich tune`"
	}
	return fmt.Sprintf("it is not a complete %s model; convert or download it again", m.arch)
}

// Sources in error messages.
const (
	fromFile = "the file"
	fromPlan = "the plan"
)

// Key returns the full key of a suffix.
func (m *Reader) Key(suffix string) string { return m.arch + "." + suffix }

// String returns a text by suffix of its key.
func (m *Reader) String(suffix string) (string, bool) { return m.source.String(m.Key(suffix)) }

// Uint returns a number that is not negative by suffix of its key.
func (m *Reader) Uint(suffix string) (uint64, bool) { return m.source.Uint(m.Key(suffix)) }

// Float returns a number by suffix of its key.
func (m *Reader) Float(suffix string) (float64, bool) { return m.source.Float(m.Key(suffix)) }

// Bool returns a truth value by suffix of its key.
func (m *Reader) Bool(suffix string) (b, ok bool) { return m.source.Bool(m.Key(suffix)) }

// Ints returns a list by suffix of its key.
func (m *Reader) Ints(suffix string) ([]int32, bool) { return m.source.Ints(m.Key(suffix)) }

// Tensors reports which of the first layers have a tensor blk.LAYER.name.
func (m *Reader) Tensors(name string, layers int) []bool { return m.source.Tensors(name, layers) }

// Size reads a required count from 1 to limit. It returns 1 after an error. A list with the same
// count for every layer counts as that count.
func (m *Reader) Size(suffix string, limit uint64) int {
	v, ok := m.Uint(suffix)
	if list, each := m.Ints(suffix); !ok && each && len(list) > 0 {
		if slices.Min(list) != slices.Max(list) {
			m.Fail("%s differs between layers, which is %w", m.Key(suffix), model.ErrUnsupported)
			return 1
		}
		v, ok = uint64(max(0, list[0])), true
	}
	if !ok {
		m.Fail("%s has no %s: %s", m.from, m.Key(suffix), m.missingKeyHint())
		return 1
	}
	if v == 0 || v > limit {
		m.Fail("%s is %d, outside 1..%d", m.Key(suffix), v, limit)
		return 1
	}
	return int(v)
}

// SizeOr reads a count from 1 to limit, or returns the default if the key is missing.
func (m *Reader) SizeOr(suffix string, limit uint64, otherwise int) int {
	if _, ok := m.Uint(suffix); !ok {
		return otherwise
	}
	return m.Size(suffix, limit)
}

// CountOr reads a count from 0 to limit, 0 if the key is missing.
func (m *Reader) CountOr(suffix string, limit uint64) int {
	if v, ok := m.Uint(suffix); !ok || v == 0 {
		return 0
	}
	return m.Size(suffix, limit)
}

// Has reports whether the source has an integer with a key.
func (m *Reader) Has(suffix string) bool {
	_, ok := m.Uint(suffix)
	return ok
}

// HasFloat reports whether the source has a number with a key.
func (m *Reader) HasFloat(suffix string) bool {
	_, ok := m.Float(suffix)
	return ok
}

// PositiveOr reads a positive number, or returns the default if the key is missing.
func (m *Reader) PositiveOr(suffix string, otherwise float64) float64 {
	v, ok := m.Float(suffix)
	if !ok {
		return otherwise
	}
	if !(v > 0) || math.IsInf(v, 0) {
		m.Fail("%s is %v, not a positive number", m.Key(suffix), v)
		return otherwise
	}
	return v
}

// NotBelow0 reads a number of zero or more, 0 if the key is missing.
func (m *Reader) NotBelow0(suffix string) float64 {
	if v, _ := m.Float(suffix); v == 0 {
		return 0
	}
	return m.PositiveOr(suffix, 0)
}
