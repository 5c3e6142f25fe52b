package haproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// message is a message of a conversation.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// answer is the result of a request.
type answer struct {
	text           string
	prompt, cached int           // tokens
	first          time.Duration // until the first token
}

// ask sends a conversation to the proxy as a stream or not, and returns the complete answer.
func (p *proxy) ask(session string, messages []message, tokens int, stream bool) (*answer, error) {
	body := map[string]any{"messages": messages, "max_tokens": tokens, "temperature": 0, "stream": stream}
	if stream {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	const url = "http://localhost/v1/chat/completions"
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // net/http must not hide a lost connection by sending the request again
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("X-Session-Id", session)
	}
	start := time.Now()
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	if stream {
		return readStream(res.Body, start)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var c chunk
	if err := json.Unmarshal(text, &c); err != nil || len(c.Choices) != 1 {
		return nil, fmt.Errorf("not an answer: %.200s", text)
	}
	return &answer{text: c.Choices[0].Message.Content}, nil
}

// chunk is an answer or an event of a streamed one.
type chunk struct {
	Choices []struct {
		Message, Delta message
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// readStream reads the events of an answer up to the last one.
func readStream(r io.Reader, start time.Time) (*answer, error) {
	a := &answer{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			return a, nil
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return nil, fmt.Errorf("not an event: %.200s", data)
		}
		if len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			if a.first == 0 {
				a.first = time.Since(start)
			}
			a.text += c.Choices[0].Delta.Content
		}
		if c.Usage.Prompt > 0 {
			a.prompt, a.cached = c.Usage.Prompt, c.Usage.Details.Cached
		}
	}
	return nil, fmt.Errorf("the stream ended early after %d bytes: %v", len(a.text), lines.Err())
}
