package server

import (
	"regexp"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
)

// Patterns by which agents recognize that they must shorten the conversation or max_tokens.
var (
	promptPattern = regexp.MustCompile(`prompt is too long: (\d+) tokens > (\d+) maximum`)
	limitPattern  = regexp.MustCompile(`input length and max_tokens exceed context limit: (\d+) \+ (\d+) > (\d+)`)
)

// TestContextOverflow checks each API's response to prompts, and prompts with max_tokens, that
// exceed the context, whole and streamed.
func TestContextOverflow(t *testing.T) {
	long := &api.TooLongError{PromptTokens: 5000, MaxTokens: 8, Context: 4096}
	limit := &api.TooLongError{PromptTokens: 4000, MaxTokens: 100, Context: 4096}
	const user = `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		path, body string
		message    []any // path of the text in the answer
		kind, code string
	}{
		{chatPath, user, []any{"error", "message"}, apierr.TypeInvalid, "context_length_exceeded"},
		{"/v1/completions", `"prompt":"x"`, []any{"error", "message"}, apierr.TypeInvalid, "context_length_exceeded"},
		{responsesPath, `"input":"x"`, []any{"error", "message"}, apierr.TypeInvalid, "context_length_exceeded"},
		{messagesPath, user, []any{"error", "message"}, apierr.TypeInvalid, ""},
		{messagesPath + "/count_tokens", user, []any{"error", "message"}, apierr.TypeInvalid, ""},
		{"/api/chat", user, []any{"error"}, "", ""},
		{"/api/generate", `"prompt":"x"`, []any{"error"}, "", ""},
	} {
		for err, pattern := range map[error]*regexp.Regexp{long: promptPattern, limit: limitPattern} {
			for _, stream := range []string{"false", "true"} {
				w := post(t, New(&fake{err: err}, Options{}), c.path, `{`+c.body+`,"stream":`+stream+`}`)
				v := parsed(t, w.Body.Bytes())
				text, _ := at(v, c.message...).(string)
				kind, _ := at(v, "error", "type").(string)
				code, _ := at(v, "error", "code").(string)
				if w.Code != 400 || !pattern.MatchString(text) || !pattern.Match(w.Body.Bytes()) ||
					kind != c.kind || code != c.code {
					t.Errorf("%s, stream %s: %d %s", c.path, stream, w.Code, w.Body)
				}
			}
		}
	}
}
