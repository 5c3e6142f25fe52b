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

// TestFormats: answers of a model that never saw JSON are valid under a schema, alike in company
// and alone; a grammar that allows everything changes no token; what cannot be used is a 400 with
// the path of the keyword.
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
				t.Errorf("in company %q, alone %q", together, alone[i])
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
