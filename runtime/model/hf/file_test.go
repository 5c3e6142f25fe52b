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
		{"text as a size", `{"hidden_size":"x"}`, 0, "", 0,
			"invalid config.json: hidden_size must be an integer, not string"},
		{"fraction as a size", `{"hidden_size":8.5}`, 0, "", 0, "hidden_size must be an integer, not number 8.5"},
		{"number as types of layers", `{"layer_types":[1]}`, 0, "", 0, "layer_types must be a string, not number"},
		{"list", `[]`, 0, "", 0, "invalid config.json: it must be an object, not array"},
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

// TestDefault checks that defaults apply to missing fields only, also in Decode, and that they keep
// what the text part has from the whole file.
func TestDefault(t *testing.T) {
	h, err := Parse([]byte(`{"dtype":"float16","tie_word_embeddings":false,"_name_or_path":"x/y",
		"text_config":{"hidden_size":9,"num_attention_heads":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	const defaults = `{"hidden_size":1,"num_hidden_layers":7,"tie_word_embeddings":true,"key_of_family":5}`
	if err := h.Default(defaults); err != nil {
		t.Fatal(err)
	}
	var own struct {
		Key int `json:"key_of_family"`
	}
	if err := h.Decode(&own); err != nil || own.Key != 5 {
		t.Errorf("Decode: %+v, %v", own, err)
	}
	if h.Hidden != 9 || h.Layers != 7 || h.Heads != 3 || *h.Tied || h.DTypeNew != "float16" || h.Name != "x/y" {
		t.Errorf("%+v", h)
	}
}
