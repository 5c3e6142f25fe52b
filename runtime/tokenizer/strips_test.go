package tokenizer

import (
	"slices"
	"testing"
)

// TestStrips checks that special tokens of Phi-3 remove the white space after them, and that tokens
// of other models do not; among <unk>, <s> and </s> only </s> does.
func TestStrips(t *testing.T) {
	meta := pieceSPM("▁", "a", "<|end|>")
	types := meta[keyTypes].([]int32)
	types[len(types)-1] = 3
	meta[keyAddSpace] = false
	for name, want := range map[string]bool{"Phi-3.5 mini": true, "phi3": true, "Phi 4": false} {
		meta[keyName] = name
		tok, err := New(meta)
		if err != nil {
			t.Fatal(err)
		}
		o := EncodeOptions{ParseSpecial: true}
		for _, c := range []struct {
			text, same string
			strips     bool
		}{{"<|end|> \n a", "<|end|>a", true}, {"</s>\ta", "</s>a", true}, {"<s> a", "<s>a", false},
			{"a <|end|>", "a<|end|>", false}} {
			got, same := tok.Encode(nil, c.text, o), tok.Encode(nil, c.same, o)
			if slices.Equal(got, same) != (want && c.strips) {
				t.Errorf("%s: %q is %v, %q is %v", name, c.text, got, c.same, same)
			}
		}
	}
}
