package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// asked sends a body and reads the JSON of the answer, which must be good.
func (s *served) asked(path, body string, into any) string {
	s.t.Helper()
	code, text, _ := s.do("POST", path, body, "")
	if err := json.Unmarshal([]byte(text), into); err != nil || code != http.StatusOK {
		s.t.Fatalf("%s: status %d, %v: %s", path, code, err, text)
	}
	return text
}

// TestServeMessages holds that Anthropic's API and OpenAI's give one answer to one question.
func TestServeMessages(t *testing.T) {
	s := startServe(t)
	const hello = `{"messages":[{"role":"user","content":"Hello!"}],"temperature":0,"max_tokens":60`
	var chat struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	s.asked("/v1/chat/completions", hello+"}", &chat)
	var answer struct {
		Content []struct{ Type, Text string }
		Stop    string `json:"stop_reason"`
		Found   string `json:"stop_sequence"`
	}
	s.asked("/v1/messages", hello+"}", &answer)
	if len(answer.Content) != 1 || answer.Content[0].Text != chat.Choices[0].Message.Content ||
		answer.Stop != "end_turn" {
		t.Errorf("%+v, the chat says %+v", answer, chat)
	}
	s.asked("/v1/messages", hello+`,"stop_sequences":["tales","no such"]}`, &answer)
	if answer.Stop != "stop_sequence" || answer.Found != "tales" || answer.Content[0].Text != "I am a teller of " {
		t.Errorf("%+v", answer)
	}
	var count struct {
		Tokens int `json:"input_tokens"`
	}
	s.asked("/v1/messages/count_tokens", hello+"}", &count)
	if count.Tokens == 0 || count.Tokens != chat.Usage.Prompt {
		t.Errorf("%d tokens are counted and %d were used", count.Tokens, chat.Usage.Prompt)
	}
	_, text, _ := s.do("POST", "/messages", hello+`,"stream":true}`, "")
	if strings.Count(text, "event: ") < 6 || !strings.HasPrefix(text, "event: message_start\n") ||
		!strings.HasSuffix(text, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") {
		t.Errorf("the stream: %s", text)
	}
	if code, text, _ := s.do("POST", "/v1/messages", `{"messages":[{"role":"user","content":"`+
		strings.Repeat("the king ", 600)+`"}]}`, ""); code != http.StatusBadRequest ||
		!strings.HasPrefix(text, `{"type":"error"`) || !strings.Contains(text, "512") {
		t.Errorf("beyond the context: status %d: %s", code, text)
	}
	s.stop()
}
