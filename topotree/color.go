package topotree

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandwich/internal/message"
)

// Color is a comparable set of basic colors. A node's color is the union of the colors of its PUs,
// so a node made by group has the union of its children's colors (Sandwich 5.2.1). A basic color is
// an index into Tree.Palette; basic colors are numbered from the fastest class to the slowest.
// Colors are ordered by their basic colors.
type Color string

// BasicColor returns the color with one basic color, which must be in [0, 65535].
func BasicColor(index int) Color {
	return Color(binary.BigEndian.AppendUint16(nil, uint16(index)))
}

// Basics returns the basic colors in ascending order.
func (c Color) Basics() []int {
	out := make([]int, 0, len(c)/2)
	for i := 0; i+1 < len(c); i += 2 {
		out = append(out, int(c[i])<<8|int(c[i+1]))
	}
	return out
}

// Has reports whether c contains a basic color.
func (c Color) Has(index int) bool { return slices.Contains(c.Basics(), index) }

// Union returns the union of two colors.
func (c Color) Union(o Color) Color {
	if c == o || o == "" {
		return c
	}
	all := append(c.Basics(), o.Basics()...)
	slices.Sort(all)
	var b []byte
	for _, index := range slices.Compact(all) {
		b = binary.BigEndian.AppendUint16(b, uint16(index))
	}
	return Color(b)
}

// String returns the basic colors joined by plus signs: "0", "0+2".
func (c Color) String() string {
	parts := make([]string, 0, len(c)/2)
	for _, index := range c.Basics() {
		parts = append(parts, strconv.Itoa(index))
	}
	return strings.Join(parts, "+")
}

// parseColor parses the result of String.
func parseColor(text string) (Color, error) {
	var c Color
	for part := range strings.SplitSeq(text, "+") {
		index, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return "", fmt.Errorf("color %q: write the numbers of the palette joined by plus signs, as in 0 or "+
				"0+1", message.Clip(text, 60))
		}
		c = c.Union(BasicColor(int(index)))
	}
	return c, nil
}

// MarshalText returns the result of String.
func (c Color) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the result of String.
func (c *Color) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*c = ""
		return nil
	}
	v, err := parseColor(string(text))
	if err != nil {
		return err
	}
	*c = v
	return nil
}

// ColorOrigin says why a color exists.
type ColorOrigin string

// Origins of colors. remove and only may select colors of core types, distances and measured
// classes. A shape color exists only because offline, disallowed or different PUs broke the
// symmetry of a class.
const (
	OriginUniform  ColorOrigin = "uniform"   // the only class
	OriginCoreType ColorOrigin = "core-type" // fast and slow cores
	OriginDistance ColorOrigin = "distance"  // NUMA distance classes, or memory speed
	OriginMeasured ColorOrigin = "measured"  // measured speed
	OriginShape    ColorOrigin = "shape"     // distinct shape
)

// ColorInfo describes one basic color of a tree.
type ColorInfo struct {
	Name    string        `json:"name" yaml:"name"`
	Origins []ColorOrigin `json:"origins" yaml:"origins,flow"`
	CPUs    CPUSet        `json:"cpus" yaml:"cpus"`
}

// isShape reports whether the color results only from a broken symmetry.
func (i ColorInfo) isShape() bool { return slices.Contains(i.Origins, OriginShape) }

func sortedKeys[V any](m map[Color]V) []Color {
	keys := make([]Color, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
