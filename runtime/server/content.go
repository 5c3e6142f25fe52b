package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// content is what a message, or the result of a tool, says in text.
type content struct {
	texts  []string
	lost   []gap // parts that cannot be used
	notes  []gap // parts of which only the text is used
	nested bool  // it is that of a document, which holds no further documents
}

// gap is a part of a request that cannot be used.
type gap struct {
	at   string // its path
	what string // for warnings: "an image", "null", ...
	data bool   // it is JSON that is no part of any kind

	// For a refusal: the field at fault, below at, and what is wrong with it.
	field, fault string
}

// empty reports whether the gap is content without anything in it.
func (g *gap) empty() bool { return g.what == whatNull || g.what == whatEmpty }

// maxGaps bounds the gaps of one message; the first ones are reported.
const maxGaps = 16

func (c *content) lose(g gap) {
	if len(c.lost) < maxGaps {
		c.lost = append(c.lost, g)
	}
}

// loseKind records a part of a kind that is not text.
func (c *content) loseKind(at, kind string) {
	c.lose(gap{at: at, what: kindNamed(kind), field: ".type",
		fault: fmt.Sprintf("is %q; only text is supported", clip(kind))})
}

// text returns the texts of all parts, separated by line breaks as other servers do.
func (c *content) text() string { return strings.Join(c.texts, "\n") }

// usable reports whether the content holds what the client sent, perhaps an empty string. Blank
// text next to parts that cannot be used does not count.
func (c *content) usable() bool {
	says := func(text string) bool { return strings.TrimSpace(text) != "" }
	return len(c.texts) > 0 && (len(c.lost) == 0 || slices.ContainsFunc(c.texts, says))
}

// orPlaceholder returns the text, or what stands in the conversation for content of which nothing
// can be used, so that the model sees that there was some.
func (c *content) orPlaceholder() string {
	if !c.usable() {
		for _, g := range c.lost {
			if !g.empty() {
				return "(" + g.what + " was left out)"
			}
		}
	}
	return c.text()
}

const (
	whatNull  = "null"
	whatEmpty = "an empty list"
)

// readContent reads a string, a part, or a list of parts. What cannot be used is in lost.
func readContent(raw json.RawMessage, at string) (c content, e *apiError) {
	e = c.read(raw, at)
	return c, e
}

func (c *content) read(raw json.RawMessage, at string) *apiError {
	switch {
	case isNull(raw):
		c.lose(gap{at: at, what: whatNull, fault: "is missing"})
	case raw[0] == '"' || raw[0] == '{':
		return c.part(raw, at)
	case raw[0] == '[':
		n := 0
		e := each(raw, at, MaxParts, func(i int, item json.RawMessage) *apiError {
			n++
			return c.part(item, fmt.Sprintf("%s[%d]", at, i))
		})
		if n == 0 {
			c.lose(gap{at: at, what: whatEmpty, fault: "is empty"})
		}
		return e
	default:
		c.lose(gap{at: at, what: whatOf(raw), data: true, fault: "must be a string or a list of text parts"})
	}
	return nil
}

// readResult reads the content of a result, which may also be any JSON.
func readResult(raw json.RawMessage, at string) (c content, e *apiError) {
	c, e = readContent(raw, at)
	if len(c.texts) == 0 && !slices.ContainsFunc(c.lost, func(g gap) bool { return !g.data }) {
		c = content{texts: []string{string(raw)}}
	}
	return c, e
}

// contentPart is a part of content, of any kind.
type contentPart struct {
	Type    string          `json:"type"`
	Text    json.RawMessage `json:"text"`
	Refusal json.RawMessage `json:"refusal"`
	Source  json.RawMessage `json:"source"`
	Content json.RawMessage `json:"content"`
}

// part adds one part: a string, or an object of some kind.
func (c *content) part(raw json.RawMessage, at string) *apiError {
	if text, ok := stringIn(raw); ok {
		c.texts = append(c.texts, text)
		return nil
	}
	var p contentPart
	if raw[0] != '{' {
		c.lose(gap{at: at, what: whatOf(raw), data: true, fault: "must be an object"})
		return nil
	}
	_ = json.Unmarshal(raw, &p) // a type of a wrong kind stays empty
	if p.Type == "refusal" {
		p.Text = p.Refusal
	}
	text, ok := stringIn(p.Text)
	switch {
	case ok:
		if c.texts = append(c.texts, text); !textKinds[p.Type] && len(c.notes) < maxGaps {
			c.notes = append(c.notes, gap{at: at, what: kindNamed(p.Type)})
		}
	case textKinds[p.Type]:
		c.lose(p.textless(at))
	case !c.nested && (p.Type == "document" || p.Type == "search_result"):
		return c.document(&p, at)
	default:
		c.loseKind(at, p.Type)
	}
	return nil
}

// textless describes a part of text that has none.
func (p *contentPart) textless(at string) gap {
	g := gap{at: at, what: "a part without text", field: ".text", fault: "is missing"}
	switch {
	case !isNull(p.Text):
		g.fault = "must be a string, not " + whatOf(p.Text)
	case p.Type == "":
		g.field, g.data = ".type", true
	}
	return g
}

// textKinds are the kinds of parts that are text.
var textKinds = map[string]bool{"": true, "text": true, "input_text": true, "output_text": true,
	"summary_text": true, "reasoning_text": true, "refusal": true}

// document adds the text of a document or of a search result, where it has some.
func (c *content) document(p *contentPart, at string) *apiError {
	var source struct {
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(p.Source, &source) // of a search result it is a string
	text := p.Content
	switch source.Type {
	case "text":
		text = source.Data
	case "content":
		text = source.Content
	}
	inner := content{nested: true}
	e := inner.read(text, at)
	if inner.usable() {
		c.texts = append(c.texts, inner.text())
	} else {
		c.loseKind(at, p.Type)
	}
	return e
}

// stringIn returns the string that raw holds.
func stringIn(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// kinds are the kinds of parts that agents send and that a model of text cannot read.
var kinds = map[string]string{
	"image": "an image", "image_url": "an image", "input_image": "an image", "image_file": "an image",
	"audio": "an audio part", "input_audio": "an audio part", "file": "a file", "input_file": "a file",
	"video": "a video", "video_url": "a video", "input_video": "a video", "document": "a document",
}

// kindNamed describes a part by its kind.
func kindNamed(kind string) string {
	if what, known := kinds[kind]; known {
		return what
	}
	return fmt.Sprintf("a part of the unknown kind %q", clip(kind))
}

// whatOf describes a JSON value that is of no use where it stands.
func whatOf(raw json.RawMessage) string {
	switch {
	case isNull(raw):
		return whatNull
	case raw[0] == '"':
		return "a string"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '{':
		return "an object"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	}
	return "a number"
}
