package hf

import (
	"strings"
	"testing"

	"sandwich/runtime/model"
)

// TestParse checks which part of a config.json Parse returns, and that Decode reads further fields
// of the same part.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, data string
		hidden     int
		dtype      string
		own        int // key_of_family
		err        string
	}{
		{"text model", `{"hidden_size":8,"dtype":"float16","key_of_family":3}`, 8, "float16", 3, ""},
		{"null text part", `{"hidden_size":8,"text_config":null,"key_of_family":3}`, 8, "", 3, ""},
		{"text part", `{"dtype":"float32","key_of_family":1,"text_config":{"hidden_size":9,"key_of_family":4}}`, 9,
			"float32", 4, ""},
		{"own type of the text part", `{"dtype":"float32","text_config":{"hidden_size":9,"torch_dtype":"float16"}}`, 9,
			"float16", 0, ""},
		{"unused text part", `{"hidden_size":8,"text_config":{"hidden_size":9}}`, 8, "", 0, ""},
		{"number as text part", `{"text_config":7}`, 0, "", 0, "invalid config.json"},
		{"text as a size", `{"hidden_size":"x"}`, 0, "", 0, "invalid config.json"},
		{"not JSON", `{`, 0, "", 0, "invalid config.json"},
		{"two heads", `{"tie_word_embeddings":true,"text_config":{"tie_word_embeddings":false}}`, 0, "", 0,
			"tie_word_embeddings true with false"},
	} {
		h, err := Parse([]byte(c.data))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var own struct {
			Key int `json:"key_of_family"`
		}
		if err := h.Decode(&own); err != nil || own.Key != c.own {
			t.Errorf("%s: key_of_family %d, want %d (%v)", c.name, own.Key, c.own, err)
		}
		if h.Hidden != c.hidden || h.DType+h.DTypeNew != c.dtype {
			t.Errorf("%s: hidden size %d of type %q, want %d of %q", c.name, h.Hidden, h.DType+h.DTypeNew, c.hidden,
				c.dtype)
		}
	}
}

// TestLinearScaling checks that linear scaling of the rotation needs a positive factor.
func TestLinearScaling(t *testing.T) {
	for factor, want := range map[float64]float64{4: 0.25, 0: 0, -2: 0} {
		h := &File{RopeScaling: &Rope{OldType: "linear", Factor: factor}}
		var c model.Config
		err := h.ReadRope(&c, []string{"linear"})
		if (err == nil) != (want > 0) || c.RopeScale != want {
			t.Errorf("factor %v: scale %v, %v", factor, c.RopeScale, err)
		}
	}
}
