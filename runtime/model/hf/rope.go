package hf

import (
	"cmp"
	"fmt"
	"slices"

	"sandwich/runtime/model"
)

// Rope holds the parameters of a rotation in a config.json.
type Rope struct {
	Theta           float64 `json:"rope_theta"`
	Type            string  `json:"rope_type"`
	OldType         string  `json:"type"`
	Factor          float64 `json:"factor"`
	Low             float64 `json:"low_freq_factor"`
	High            float64 `json:"high_freq_factor"`
	Original        int     `json:"original_max_position_embeddings"`
	Log             float64 `json:"mscale_all_dim"`
	Fast            float64 `json:"beta_fast"`
	Slow            float64 `json:"beta_slow"`
	Rotary          float64 `json:"partial_rotary_factor"`
	AttnTemperature float64 `json:"llama_4_scaling_beta"`
	Far             *Rope   `json:"full_attention"` // if kinds of layers have different rotations
	Near            *Rope   `json:"sliding_attention"`
}

// ReadRope reads base and scaling of the rotation.
func (h *File) ReadRope(c *model.Config, known []string) error {
	r := h.RopeScaling
	if h.Rope != nil {
		if r = h.Rope; r.Far != nil {
			r = r.Far
		}
		c.RopeBase = r.Theta
	}
	if c.RopeBase == 0 {
		c.RopeBase = 10000
	}
	if r == nil {
		return nil
	}
	kind := r.Kind()
	switch kind {
	case "", "default":
		return nil
	case "llama3":
		c.Llama3 = &model.Llama3Rope{Factor: r.Factor, Low: r.Low, High: r.High, Original: r.Original}
		return nil
	}
	if slices.Contains(known, kind) {
		switch kind {
		case "yarn":
			c.Yarn = &model.Yarn{Factor: r.Factor, Original: cmp.Or(r.Original, c.Context), Fast: cmp.Or(r.Fast, 32),
				Slow: cmp.Or(r.Slow, 1), Log: r.Log}
		case "linear":
			if !(r.Factor > 0) {
				return fmt.Errorf("linear RoPE scaling has the factor %v, not a positive number: the file is damaged",
					r.Factor)
			}
			c.RopeScale = 1 / r.Factor
		}
		return nil
	}
	return fmt.Errorf("RoPE scaling %q is %w", kind, model.ErrUnsupported)
}

// Kind returns the name of the scaling rule, "" for none.
func (r *Rope) Kind() string { return cmp.Or(r.Type, r.OldType) }

// ReadPartialRotary reads the part of a head that rotates.
func (h *File) ReadPartialRotary(c *model.Config) {
	if h.Rope != nil && h.Rope.Rotary > 0 {
		h.Rotary = h.Rope.Rotary
	}
	if h.Rotary > 0 && h.Rotary < 1 {
		c.RopeDim = int(h.Rotary * float64(c.HeadDim))
	}
}
