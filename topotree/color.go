package topotree

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Color is a set of basic colors, kept as a comparable value: a node's color is the set of the
// colors of the PUs under it, so that a node made by group inherits the set of its children's
// colors (Sandwich 5.2.1). A basic color is an index into Tree.Palette. Colors order by their basic
// colors, the lowest first; basic colors are numbered from the fastest class to the slowest.
type Color string

// basicColor returns the color that holds index alone; index must be in [0, 65535].
func basicColor(index int) Color {
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

// Has reports whether basic color index is part of c.
func (c Color) Has(index int) bool { return slices.Contains(c.Basics(), index) }

// Union returns the set of the basic colors of both.
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

// String writes the basic colors joined by plus signs: "0", "0+2".
func (c Color) String() string {
	parts := make([]string, 0, len(c)/2)
	for _, index := range c.Basics() {
		parts = append(parts, strconv.Itoa(index))
	}
	return strings.Join(parts, "+")
}

// parseColor reads what String writes.
func parseColor(text string) (Color, error) {
	var c Color
	for part := range strings.SplitSeq(text, "+") {
		index, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return "", fmt.Errorf("color %q: write the numbers of the palette joined by plus signs, as in 0 or "+
				"0+1", clip(text))
		}
		c = c.Union(basicColor(int(index)))
	}
	return c, nil
}

// MarshalText writes what String writes.
func (c Color) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what String writes.
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

// The origins of colors. Architecture and measured classes are what remove may single out; a shape
// color exists only because offline, disallowed or different PUs broke the symmetry of a class.
const (
	OriginUniform  ColorOrigin = "uniform"   // the only class
	OriginCoreType ColorOrigin = "core-type" // fast and slow cores
	OriginDistance ColorOrigin = "distance"  // NUMA distance classes, or memory speed
	OriginMeasured ColorOrigin = "measured"  // a class that a measurement gave
	OriginShape    ColorOrigin = "shape"     // split off because the shape differs
)

// ColorInfo describes one basic color of a tree.
type ColorInfo struct {
	Name    string        `json:"name" yaml:"name"`
	Origins []ColorOrigin `json:"origins" yaml:"origins,flow"`
	CPUs    CPUSet        `json:"cpus" yaml:"cpus"`
}

// isShape reports whether the color exists only through a broken symmetry.
func (i ColorInfo) isShape() bool { return slices.Contains(i.Origins, OriginShape) }
