package textio

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// spell returns an engine whose answer is a text, one token per byte, and the end token if end is
// set.
func spell(t *testing.T, text string, end bool) *Adapter {
	t.Helper()
	a := prompter(t, "")
	var list tokens
	for _, id := range encodeBytes(a, text) {
		list = append(list, api.Token{TokenLogprob: api.TokenLogprob{ID: id}})
	}
	if end {
		list = append(list, api.Token{TokenLogprob: api.TokenLogprob{ID: 257}, End: true})
	}
	return New(list, a.tok)
}

// encodeBytes encodes each byte of a text as a token.
func encodeBytes(a *Adapter, text string) (ids []int32) {
	for id := range int32(a.tok.Vocab()) {
		if piece := a.tok.Piece(id); len(piece) == 1 {
			for i := range len(text) {
				if ids == nil {
					ids = make([]int32, len(text))
				}
				if text[i] == piece[0] {
					ids[i] = id
				}
			}
		}
	}
	return ids
}

// collect runs a request and returns the text of its answer.
func collect(t *testing.T, a *Adapter, r api.Request) (text string, out []api.Token, res api.Result) {
	t.Helper()
	res, err := a.Generate(t.Context(), r, func(tok api.Token) error {
		text += tok.Text
		out = append(out, tok)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, out, res
}

// TestStopString checks that an answer ends before a stop string, wherever tokens begin and end,
// and that no part of a stop string is sent.
func TestStopString(t *testing.T) {
	const whole = "One fish, zwei Füße, 三条鱼 and more"
	runes := []rune(whole)
	for from := range len(runes) - 6 {
		for length := 1; length < 6; length++ {
			stop := string(runes[from : from+length])
			text, _, res := collect(t, spell(t, whole, false), api.Request{Stop: []string{"never", stop}})
			want, _, _ := strings.Cut(whole, stop)
			if text != want || res.Finish != api.FinishStop || res.StopString != stop {
				t.Errorf("stop %q: %q, %s, %q; want %q", stop, text, res.Finish, res.StopString, want)
			}
		}
	}
}

// TestHeldText checks that text which may begin a stop string comes with a last call when the
// answer ends without the rest of it.
func TestHeldText(t *testing.T) {
	for _, end := range []bool{false, true} {
		text, out, res := collect(t, spell(t, "a##", end), api.Request{Stop: []string{"###"}})
		if last := out[len(out)-1]; text != "a##" || last.ID != api.NoToken || last.Text != "##" {
			t.Errorf("end %v: %q, last token %+v", end, text, last)
		}
		if res.Finish != api.FinishLength || res.StopString != "" {
			t.Errorf("end %v: %+v", end, res)
		}
	}
}

// TestStopAtFlush checks that a stop string that is complete only with an invalid rest ends the
// answer.
func TestStopAtFlush(t *testing.T) {
	text, _, res := collect(t, spell(t, "ab\xe4", false), api.Request{Stop: []string{"b\uFFFD"}})
	if text != "a" || res.Finish != api.FinishStop || res.StopString != "b\uFFFD" {
		t.Errorf("%q, %+v", text, res)
	}
}

// TestPieces checks that tokens with log probabilities and their alternatives are spelled, and
// other tokens are not.
func TestPieces(t *testing.T) {
	a := prompter(t, "")
	ids := encodeBytes(a, "xy")
	list := tokens{{TokenLogprob: api.TokenLogprob{ID: ids[0]}, Top: []api.TokenLogprob{{ID: ids[1]}}}}
	_, out, _ := collect(t, New(list, a.tok), api.Request{Logprobs: true})
	if out[0].Piece != "x" || out[0].Top[0].Piece != "y" {
		t.Errorf("pieces are %+v", out[0])
	}
	if _, out, _ = collect(t, New(list, a.tok), api.Request{}); out[0].Piece != "" {
		t.Errorf("a token without log probabilities is spelled: %+v", out[0])
	}
}

// TestPromptTokensHaveNoText checks that tokens of the prompt and end tokens add no text.
func TestPromptTokensHaveNoText(t *testing.T) {
	a := prompter(t, "")
	ids := encodeBytes(a, "xy")
	list := tokens{{TokenLogprob: api.TokenLogprob{ID: ids[0]}, Prompt: true},
		{TokenLogprob: api.TokenLogprob{ID: ids[1]}}, {TokenLogprob: api.TokenLogprob{ID: 257}, End: true}}
	if text, _, _ := collect(t, New(list, a.tok), api.Request{Control: true}); text != "y" {
		t.Errorf("the text is %q", text)
	}
}

// TestEmitError checks that an error of emit ends the answer.
func TestEmitError(t *testing.T) {
	failed := errors.New("gone")
	emit := func(api.Token) error { return failed }
	_, err := spell(t, "abc", false).Generate(context.Background(), api.Request{}, emit)
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

// TestWithoutTokenizer checks that answers have no text without a tokenizer.
func TestWithoutTokenizer(t *testing.T) {
	a := New(tokens{{TokenLogprob: api.TokenLogprob{ID: 7}}}, nil)
	if text, out, _ := collect(t, a, api.Request{Stop: []string{"x"}, Logprobs: true}); text != "" || out[0].ID != 7 {
		t.Errorf("%q, %+v", text, out)
	}
}
