package api

import "testing"

func TestTooLongText(t *testing.T) {
	const hint = " (context_length_exceeded); shorten the prompt"
	for _, c := range []struct {
		err  TooLongError
		want string
	}{
		{TooLongError{PromptTokens: 5000, MaxTokens: 10, Context: 4096},
			"prompt is too long: 5000 tokens > 4096 maximum" + hint},
		{TooLongError{PromptTokens: 4096, Context: 4096}, "prompt is too long: 4096 tokens > 4095 maximum" + hint},
		{TooLongError{PromptTokens: 9000, Context: 4096, AtLeast: true}, "prompt is too long: 9000 tokens > 4096 " +
			"maximum (context_length_exceeded); the prompt has at least that many tokens; shorten the prompt"},
		{TooLongError{PromptTokens: 4000, MaxTokens: 97, Context: 4096}, "input length and max_tokens exceed context " +
			"limit: 4000 + 97 > 4096; shorten the prompt or lower max_tokens"},
		{TooLongError{PromptTokens: 9, Context: 8, Text: true}, "the text has 9 tokens and the context holds 8; " +
			"shorten it, or have it truncated"},
		{TooLongError{PromptTokens: 9, Context: 8, Text: true, Of: "text 1", Param: "query", AtLeast: true},
			"text 1 has at least 9 tokens and the context holds 8; shorten it"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
