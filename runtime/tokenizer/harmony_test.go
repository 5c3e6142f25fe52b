package tokenizer

import "testing"

// TestHarmonyEnds: where a vocabulary speaks harmony, <|end|> ends one message of an answer, and
// <|return|> and <|call|> end the answer.
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
