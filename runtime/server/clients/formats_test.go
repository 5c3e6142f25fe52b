package clients

import (
	"encoding/json"
	"testing"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
)

// TestFormatsTellApart asks for answers under a oneOf of each two formats, and of a format with a
// pattern and a length, at temperatures 0 and 1. An independent validator confirms that exactly one
// of them holds.
func TestFormatsTellApart(t *testing.T) {
	c := connect(t)
	kinds := []object{{"pattern": "^\\$\\{[a-z]+\\}$"}, {"maxLength": 12}}
	for _, name := range []string{"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri",
		"uuid", "json-pointer", "relative-json-pointer"} {
		kinds = append(kinds, object{"format": name})
	}
	type ask struct {
		schema object
		seed   int
	}
	var asks []ask
	for i, a := range kinds {
		for _, b := range kinds[:i] {
			for seed := range 4 {
				asks = append(asks, ask{object{"type": "string", "oneOf": []any{a, b}}, seed})
			}
		}
	}
	counts := tally{why: map[string]int{}}
	inBatches(len(asks), func(i int) {
		schema := asks[i].schema
		resp, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
			MaxCompletionTokens: openai.Int(120), Temperature: openai.Float(float64(i % 2)),
			Seed: openai.Int(int64(asks[i].seed)),
		}, option.WithJSONSet("response_format", map[string]any{"type": "json_schema",
			"json_schema": map[string]any{"name": "answer", "strict": true, "schema": schema}}))
		if err != nil {
			counts.refuse(err)
			t.Errorf("%v: %v", schema, err)
			return
		}
		if !counts.isWhole(resp.Choices[0].FinishReason) {
			return
		}
		if err := valid(validator(t, schema), resp.Choices[0].Message.Content); err != nil {
			shown, _ := json.Marshal(schema)
			t.Errorf("%s\nallows %s\n%v", shown, resp.Choices[0].Message.Content, err)
		}
	})
	t.Logf("%d answers are whole and valid, %d cut", counts.whole, counts.cut)
	if counts.cut*20 > counts.whole {
		t.Errorf("more than one answer in 20 is cut")
	}
}
