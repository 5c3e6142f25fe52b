package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

type formatAnswer struct {
	Choices []struct {
		Message struct{ Content string }
		Finish  string `json:"finish_reason"`
	}
	Error struct{ Message, Param string }
}

func (s *served) chatAnswer(fields string) (int, formatAnswer) {
	s.t.Helper()
	body := `{"messages":[{"role":"user","content":"Tell me of the fox."}],` + fields + `}`
	status, text, _ := s.do(http.MethodPost, "/v1/chat/completions", body, "")
	var a formatAnswer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		s.t.Errorf("%s: %v", text, err)
	}
	return status, a
}

// TestFormats checks that answers are valid under a schema even for a model that never saw JSON,
// and that they are batch-invariant. A grammar that allows everything changes no token, and an
// unusable schema gets status 400 with the path of the keyword.
func TestFormats(t *testing.T) {
	s := startServe(t)
	const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"fox","strict":true,"schema":{
		"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":1,"maximum":99},
		"tags":{"type":"array","items":{"enum":["red","sly"]},"maxItems":3}},
		"required":["name","age","tags"],"additionalProperties":false}}},"max_tokens":90,`
	type fox struct {
		Name *string
		Age  int
		Tags []string
	}
	alone := make([]string, 4)
	ask := func(i int) string {
		status, a := s.chatAnswer(schema + fmt.Sprintf(`"temperature":%d,"seed":%d`, i%2, i))
		if status != 200 || len(a.Choices) != 1 || a.Choices[0].Finish != "stop" {
			t.Errorf("status %d %+v", status, a)
			return ""
		}
		var f fox
		d := json.NewDecoder(strings.NewReader(a.Choices[0].Message.Content))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil || f.Name == nil || f.Age < 1 || f.Age > 99 || f.Tags == nil ||
			len(f.Tags) > 3 {
			t.Errorf("%q: %v", a.Choices[0].Message.Content, err)
		}
		return a.Choices[0].Message.Content
	}
	for i := range alone {
		alone[i] = ask(i)
	}
	var wg sync.WaitGroup
	for i := range alone {
		wg.Go(func() {
			if together := ask(i); together != alone[i] {
				t.Errorf("in a batch %q, alone %q", together, alone[i])
			}
		})
	}
	wg.Wait()
	_, plain := s.chatAnswer(`"temperature":0,"max_tokens":40`)
	_, anything := s.chatAnswer(`"temperature":0,"max_tokens":40,"grammar":"root ::= .*"`)
	if len(plain.Choices) != 1 || len(anything.Choices) != 1 || plain.Choices[0] != anything.Choices[0] {
		t.Errorf("under a grammar that allows everything %+v, without %+v", anything, plain)
	}
	if _, a := s.chatAnswer(`"response_format":{"type":"json_object"},"max_tokens":30`); len(a.Choices) != 1 ||
		!json.Valid([]byte(a.Choices[0].Message.Content)) {
		t.Errorf("json_object: %+v", a)
	}
	status, a := s.chatAnswer(`"json_schema":{"type":"object","properties":{"a":{"$dynamicRef":"#b"}}}`)
	if status != 400 || a.Error.Param != "json_schema" || !strings.Contains(a.Error.Message,
		"#/properties/a/$dynamicRef") {
		t.Errorf("status %d %+v", status, a)
	}
}

// TestFormatLimits checks that a small body that asks for a large automaton is refused by the limit
// and the field, while others are answered, and that the queue is asked first.
func TestFormatLimits(t *testing.T) {
	s := startServe(t, "--queue", "40")
	const greedy = `{"type":"integer","multipleOf":40%02d,"minimum":-123456789012345,"maximum":987654321012345}`
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			status, a := s.chatAnswer(`"max_tokens":40,"json_schema":` + fmt.Sprintf(greedy, i))
			if status != 400 || a.Error.Param != "json_schema" || !strings.Contains(a.Error.Message,
				"limit of 24 MiB") {
				t.Errorf("status %d %+v", status, a)
			}
		})
		wg.Go(func() {
			status, a := s.chatAnswer(fmt.Sprintf(`"max_tokens":40,"json_schema":{"const":"answer %d"}`, i))
			if want := fmt.Sprintf(`"answer %d"`, i); status != 200 || a.Choices[0].Message.Content != want {
				t.Errorf("status %d %+v, want %s", status, a, want)
			}
		})
	}
	wg.Wait()
}

// TestStrictTools checks that what cannot be enforced of a tool's schema is named in warnings, with
// the rest enforced, and refused where the tool is strict.
func TestStrictTools(t *testing.T) {
	s := startServe(t)
	ask := func(strict bool) (int, string) {
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"hi"}],"max_tokens":120,"tool_choice":"required",
			"tools":[{"type":"function","function":{"name":"f","strict":%t,"parameters":{"type":"object","properties":{
			"q":{"type":"string","pattern":"^(a|b)\\1$","maxLength":4},"n":{"type":"integer"}},"required":["q","n"],
			"additionalProperties":false}}}]}`, strict)
		status, text, _ := s.do(http.MethodPost, "/v1/chat/completions", body, "")
		return status, text
	}
	if status, text := ask(true); status != 400 || !strings.Contains(text, "tools[0] (f) is strict") ||
		!strings.Contains(text, "#/properties/q/pattern") {
		t.Errorf("a strict tool: status %d %s", status, text)
	}
	status, text := ask(false)
	var a struct {
		Choices []struct {
			Message struct {
				Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
		Warnings []string
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil || status != 200 || len(a.Warnings) != 1 ||
		!strings.Contains(a.Warnings[0], "tools[0] (f): #/properties/q/pattern") ||
		len(a.Choices[0].Message.Calls) == 0 {
		t.Fatalf("status %d %s", status, text)
	}
	var arguments struct {
		Q *string
		N *int
	}
	got := a.Choices[0].Message.Calls[0].Function.Arguments
	if err := json.Unmarshal([]byte(got), &arguments); err != nil || arguments.Q == nil || arguments.N == nil ||
		len([]rune(*arguments.Q)) > 4 {
		t.Errorf("arguments %s: %v", got, err)
	}
}
