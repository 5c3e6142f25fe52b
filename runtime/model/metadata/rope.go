package metadata

import (
	"cmp"

	"sandwich/runtime/model"
)

// rope reads base and scaling of the rotation.
func (m *Reader) rope(c *model.Config) {
	c.RopeBase = m.PositiveOr("rope.freq_base", 10000)
	if dim := m.SizeOr("rope.dimension_count", 1<<12, c.HeadDim); dim != c.HeadDim {
		c.RopeDim = dim
	}
	if gain := m.PositiveOr("rope.scaling.attn_factor", 1); gain != 1 {
		c.RopeGain = gain
	}
	factor := m.scaling()
	original := m.SizeOr("rope.scaling.original_context_length", 1<<26, c.Context)
	switch rule, _ := m.String("rope.scaling.type"); rule {
	case "none":
	case "yarn":
		c.Yarn = &model.Yarn{Factor: cmp.Or(factor, 1), Fast: 32, Slow: 1, Original: original}
	case "longrope":
		c.Original = original
		fallthrough
	case "":
		if factor > 0 && factor != 1 {
			c.RopeScale = 1 / factor
		}
	case "linear":
		c.RopeScale = 1 / factor
		if factor == 0 {
			m.Fail("%s has no %s, which linear scaling needs", m.from, m.Key("rope.scaling.factor"))
		}
	case "llama3":
		c.Llama3 = &model.Llama3Rope{Factor: m.PositiveOr("rope.scaling.factor", 8),
			Low: m.PositiveOr("rope.scaling.low_freq_factor", 1), High: m.PositiveOr("rope.scaling.high_freq_factor",
				4),
			Original: m.SizeOr("rope.scaling.original_context_length", 1<<26, 8192)}
	default:
		c.RopeRule = rule
	}
}

// scaling reads the scaling factor of the rotation, under its name or that of converters in 2023,
// which had only linear scaling. It returns 0 if there is none.
func (m *Reader) scaling() float64 {
	for _, suffix := range []string{"rope.scaling.factor", "rope.scale_linear"} {
		if f, ok := m.Float(suffix); ok && f != 0 {
			return m.PositiveOr(suffix, 0)
		}
	}
	return 0
}

// Near reads base and scale of the rotation in windowed layers. With the scaling type "none", a
// scaling factor still applies to these layers, as in llama.cpp.
func (m *Reader) Near(c *model.Config) {
	c.Windows.Base = m.PositiveOr("rope.freq_base_swa", 0)
	rule, _ := m.String("rope.scaling.type")
	if factor := m.scaling(); rule == "none" && factor > 0 {
		c.Windows.Scale = 1 / factor
	}
}

// Sections reads how the pairs of a rotation are divided among the axes time, height, width and a
// fourth one. In a text the first three equal the position and the fourth is 0, so that its pairs
// do not rotate. The order of pairs is that of ggml's rope, interleaved or not, also if the number
// of pairs differs from that of the file.
func (m *Reader) Sections(c *model.Config, interleaved bool) {
	const key = "rope.dimension_sections"
	list, ok := m.Ints(key)
	if !ok || m.from != fromFile {
		return
	}
	var of [4]int
	sum := 0
	for i, n := range list {
		if n < 0 || n > 1<<12 || i >= len(of) {
			m.Fail("%s has entry %d with the value %d: it needs up to four entries from 0 to 4096", m.Key(key), i+1, n)
			return
		}
		of[i] = int(n)
		sum += int(n)
	}
	if sum == of[3] {
		m.Fail("%s has no pairs that rotate by position: the file is damaged", m.Key(key))
		return
	}
	for pair := range c.RotatedDims() / 2 {
		at, bound := pair%sum, sum-of[3]
		if interleaved {
			bound = 3 * of[at%3]
		}
		if at >= bound {
			c.Unrotated = append(c.Unrotated, pair)
		}
	}
}
