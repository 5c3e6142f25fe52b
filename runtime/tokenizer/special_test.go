package tokenizer

import (
	"slices"
	"testing"
)

// TestEnds checks which tokens end an answer, by the spellings in a vocabulary.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name      string
		has, ends []string
	}{
		{"ChatML", []string{"<|im_start|>", "<|im_end|>"}, []string{"<|im_end|>"}},
		{"phi", []string{"<|end|>", "<|user|>"}, []string{"<|end|>"}},
		{"a call alone", []string{"<|end|>", "<|call|>", "<|other|>"}, []string{"<|end|>", "<|call|>"}},
		{"harmony", []string{"<|end|>", "<|call|>", "<|return|>"}, []string{"<|call|>", "<|return|>"}},
		{"Solar Open", []string{"<|end|>", "<|calls|>", "<|flush|>"}, []string{"<|calls|>", "<|flush|>"}},
		{"flush alone", []string{"<|end|>", "<|flush|>"}, []string{"<|end|>", "<|flush|>"}},
		{"Gemma 4", []string{"<eos>", "<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
			"<tool_response|>", "</s>"}, []string{"<eos>", "<turn|>", "<|tool_response>"}},
		{"SentencePiece", []string{"<s>", "</s>"}, []string{"</s>"}},
		{"Kimi K2", []string{"[BOS]", "[EOS]", "[EOT]", "[PAD]"}, []string{"[EOS]", "[EOT]", "[PAD]"}},
		{"infill", []string{"<|fim_prefix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
			[]string{"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}},
	} {
		tok, err := New(bytesBPE(nil, c.has...))
		if err != nil {
			t.Fatal(err)
		}
		var ends []string
		for i, text := range c.has {
			id := int32(tok.Vocab() - len(c.has) + i)
			if tok.IsEOG(id) {
				ends = append(ends, text)
			}
			if c.name == "Gemma 4" && tok.IsControl(id) == (text == "</s>") {
				t.Errorf("%s: %s is control: %v", c.name, text, tok.IsControl(id))
			}
		}
		if !slices.Equal(ends, c.ends) {
			t.Errorf("%s: ends with %q, want %q", c.name, ends, c.ends)
		}
	}
}

// TestEndsByKey checks that the infill tokens that a file names end an answer, whatever their
// spelling.
func TestEndsByKey(t *testing.T) {
	for i, key := range []string{keyEOS, keyEOT, keyEOM, keyInfillPad, keyInfillRepo, keyInfillFile} {
		tok, err := New(bytesBPE(nil, "<a>", "<b>").with(fields{key: uint64(257)}))
		if err != nil || !tok.IsEOG(257) || tok.IsEOG(256) {
			t.Errorf("%d: %s does not end a reply, %v", i, key, err)
		}
	}
}

// TestHarmonyEnds checks the tokens of harmony: <|end|> ends a message of an answer, <|return|> and
// <|call|> end the answer.
func TestHarmonyEnds(t *testing.T) {
	for _, harmony := range []bool{false, true} {
		special := []string{"<|end|>", "<|call|>", "<|other|>"}
		if harmony {
			special[2] = "<|return|>"
		}
		tok, err := New(bytesBPE(nil, special...).with(fields{keyPre: "gpt-2"}))
		if err != nil {
			t.Fatal(err)
		}
		first := int32(tok.Vocab() - len(special))
		if tok.IsEOG(first) == harmony || !tok.IsControl(first) || !tok.IsEOG(first+1) ||
			tok.IsEOG(first+2) != harmony {
			t.Errorf("harmony %v: ends %v %v %v", harmony, tok.IsEOG(first), tok.IsEOG(first+1), tok.IsEOG(first+2))
		}
	}
}
