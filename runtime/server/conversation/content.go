package conversation

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
)

// Content is the text of a message or of a tool result.
type Content struct {
	Texts  []string
	lost   []gap // parts that cannot be used
	notes  []gap // parts of which only the text is used
	nested bool  // the content belongs to a document, which cannot contain documents
	marked int   // number of Texts up to the last one with cache_control
}

// gap describes a part of a request that cannot be used.
type gap struct {
	at   string // path of the part
	what string // description for warnings: "an image", "null", ...
	data bool   // JSON that is not a content part of any kind

	// Error text: the field at fault, relative to at, and what is wrong with it.
	field, fault string
}

// empty reports whether the part is empty content.
func (g *gap) empty() bool { return g.what == whatNull || g.what == whatEmpty }

// MaxParts bounds the parts of one message.
const MaxParts = 4096

// maxGaps bounds the gaps recorded for one message; later ones are dropped.
const maxGaps = 16

// addGap records a part that cannot be used.
func (c *Content) addGap(g gap) {
	if len(c.lost) < maxGaps {
		c.lost = append(c.lost, g)
	}
}

// addGapOfType records a part whose type is not text.
func (c *Content) addGapOfType(at, kind string) {
	c.addGap(gap{at: at, what: describeType(kind), field: ".type",
		fault: fmt.Sprintf("is %q; only text is supported", jsontext.Clip(kind))})
}

// AddEmpty records an empty list.
func (c *Content) AddEmpty(at string) { c.addGap(gap{at: at, what: whatEmpty, fault: "is empty"}) }

// AddUnusable records an unusable field that belongs to a message, described by what.
func (c *Content) AddUnusable(at, what, fault string) {
	c.addGap(gap{at: at, what: what, fault: fault})
}

// Blank reports whether nothing was read.
func (c *Content) Blank() bool { return c.Texts == nil && c.lost == nil }

// text returns the texts of all parts, separated by line breaks.
func (c *Content) text() string { return strings.Join(c.Texts, "\n") }

// Mark marks all of the content for the prefix cache, as if its last part had cache_control.
func (c *Content) Mark() { c.marked = math.MaxInt }

// DeleteTexts deletes the texts for which del returns true.
func (c *Content) DeleteTexts(del func(text string) bool) {
	kept, marked := []string(nil), c.marked
	for i, text := range c.Texts {
		switch {
		case !del(text):
			kept = append(kept, text)
		case i < marked:
			c.marked--
		}
	}
	c.Texts = kept
}

// mark returns the Mark of a message with this content (api.Message).
func (c *Content) mark() int {
	if c.marked == 0 || c.marked >= len(c.Texts) {
		return min(c.marked, 1) * api.MarkEnd
	}
	return len(strings.Join(c.Texts[:c.marked], "\n"))
}

// Usable reports whether the content holds usable text, which may be an empty string. Blank text
// next to unusable parts does not count.
func (c *Content) Usable() bool {
	says := func(text string) bool { return strings.TrimSpace(text) != "" }
	return len(c.Texts) > 0 && (len(c.lost) == 0 || slices.ContainsFunc(c.Texts, says))
}

// orPlaceholder returns the text, or a placeholder if no part is usable, so that the model sees
// that something was there.
func (c *Content) orPlaceholder() string {
	if !c.Usable() {
		for _, g := range c.lost {
			if !g.empty() {
				return "(" + g.what + " was left out)"
			}
		}
	}
	return c.text()
}

// Descriptions of empty content.
const (
	whatNull  = "null"
	whatEmpty = "an empty list"
)

// ReadContent reads a string, a content part or a list of parts. History.Report reports parts that
// cannot be used.
func ReadContent(raw json.RawMessage, at string) (c Content, e *apierr.Error) {
	e = c.read(raw, at)
	return c, e
}

// read adds the content of raw, located at path at.
func (c *Content) read(raw json.RawMessage, at string) *apierr.Error {
	switch {
	case jsontext.IsNull(raw):
		c.addGap(gap{at: at, what: whatNull, fault: "is missing"})
	case raw[0] == '"' || raw[0] == '{':
		return c.AddPart(raw, at)
	case raw[0] == '[':
		n := 0
		e := fields.Each(raw, at, MaxParts, func(i int, item json.RawMessage) *apierr.Error {
			n++
			return c.AddPart(item, fmt.Sprintf("%s[%d]", at, i))
		})
		if n == 0 {
			c.AddEmpty(at)
		}
		return e
	default:
		c.addGap(gap{at: at, what: describeValue(raw), data: true, fault: "must be a string or a list of text parts"})
	}
	return nil
}

// ReadResult reads the content of a tool result, which may also be arbitrary JSON.
func ReadResult(raw json.RawMessage, at string) (c Content, e *apierr.Error) {
	c, e = ReadContent(raw, at)
	if len(c.Texts) == 0 && !slices.ContainsFunc(c.lost, func(g gap) bool { return !g.data }) {
		c = Content{Texts: []string{string(raw)}}
	}
	return c, e
}

// contentPart is a part of content of any type.
type contentPart struct {
	Type    string          `json:"type"`
	Text    json.RawMessage `json:"text"`
	Refusal json.RawMessage `json:"refusal"`
	Source  json.RawMessage `json:"source"`
	Content json.RawMessage `json:"content"`
	Cache   json.RawMessage `json:"cache_control"`
}

// AddPart adds one part: a string or an object.
func (c *Content) AddPart(raw json.RawMessage, at string) *apierr.Error {
	if text, ok := jsontext.String(raw); ok {
		c.Texts = append(c.Texts, text)
		return nil
	}
	var p contentPart
	if raw[0] != '{' {
		c.addGap(gap{at: at, what: describeValue(raw), data: true, fault: "must be an object"})
		return nil
	}
	_ = json.Unmarshal(raw, &p) // a type that is not a string stays empty
	if p.Type == "refusal" {
		p.Text = p.Refusal
	}
	if !jsontext.IsNull(p.Cache) {
		defer func() { c.marked = len(c.Texts) }()
	}
	text, ok := jsontext.String(p.Text)
	switch {
	case ok:
		if c.Texts = append(c.Texts, text); !textKinds[p.Type] && len(c.notes) < maxGaps {
			c.notes = append(c.notes, gap{at: at, what: describeType(p.Type)})
		}
	case textKinds[p.Type]:
		c.addGap(p.missingText(at))
	case !c.nested && (p.Type == "document" || p.Type == "search_result"):
		return c.document(&p, at)
	default:
		c.addGapOfType(at, p.Type)
	}
	return nil
}

// missingText describes a text part without text.
func (p *contentPart) missingText(at string) gap {
	g := gap{at: at, what: "a part without text", field: ".text", fault: "is missing"}
	switch {
	case !jsontext.IsNull(p.Text):
		g.fault = "must be a string, not " + describeValue(p.Text)
	case p.Type == "":
		g.field, g.data = ".type", true
	}
	return g
}

// textKinds lists the types of parts that hold text.
var textKinds = map[string]bool{"": true, "text": true, "input_text": true, "output_text": true,
	"summary_text": true, "reasoning_text": true, "refusal": true}

// document adds the text of a document or search result, or records it as unusable if it has none.
func (c *Content) document(p *contentPart, at string) *apierr.Error {
	var source struct {
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(p.Source, &source) // a string in search results
	text := p.Content
	switch source.Type {
	case "text":
		text = source.Data
	case "content":
		text = source.Content
	}
	inner := Content{nested: true}
	e := inner.read(text, at)
	if inner.Usable() {
		c.Texts = append(c.Texts, inner.text())
	} else {
		c.addGapOfType(at, p.Type)
	}
	return e
}

// kinds describes the part types that a text model cannot read.
var kinds = map[string]string{
	"image": "an image", "image_url": "an image", "input_image": "an image", "image_file": "an image",
	"audio": "an audio part", "input_audio": "an audio part", "file": "a file", "input_file": "a file",
	"video": "a video", "video_url": "a video", "input_video": "a video", "document": "a document",
}

// describeType describes a part type in words.
func describeType(kind string) string {
	if what, known := kinds[kind]; known {
		return what
	}
	return fmt.Sprintf("a part of the unknown kind %q", jsontext.Clip(kind))
}

// describeValue describes the type of an unusable JSON value.
func describeValue(raw json.RawMessage) string {
	switch {
	case jsontext.IsNull(raw):
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
