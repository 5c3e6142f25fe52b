package toolcall

import (
	"strings"

	"sandwich/runtime/api"
)

// Delta is the text, reasoning and calls that a part of an answer adds.
type Delta struct {
	Text, Reasoning string
	Calls           []api.CallDelta
}

// Parser splits one answer into reasoning, text and calls while it arrives. It never fails: a call
// that turns out to be malformed becomes text. A Parser must not be used concurrently.
type Parser struct {
	f     *Format
	calls bool            // look for calls
	kinds map[string]tool // by name
	newID func() string

	buf          string // unread input
	state        state
	raw          string // call syntax read before the name; becomes text if the call is malformed
	name         string // name of the call so far
	held         string // trailing white space that is held back because a call may follow
	hasText      bool   // the answer has text or calls
	count        int    // calls so far
	hasReasoning bool   // the answer has reasoning
	args         reader // arguments of the current call
	out          Delta
}

type state uint8

const (
	inText state = iota
	inReasoning
	inOpening // before the name of a call
	inName
	inMiddle
	inArguments
	inAfter
	afterCall
	afterCalls
)

// NewParser returns a Parser for one answer. tools are the tools that may be called; without tools,
// calls are text. thinking states that the prompt ends inside reasoning. newID returns the ID of
// each call.
func (f *Format) NewParser(tools []api.Tool, thinking bool, newID func() string) *Parser {
	p := &Parser{f: f, calls: len(tools) > 0, kinds: map[string]tool{}, newID: newID}
	for _, t := range tools {
		p.kinds[t.Name] = tool{name: t.Name, params: readParams([]byte(t.Parameters))}
	}
	if thinking {
		p.state = inReasoning
	}
	return p
}

// Calls returns the number of calls that have begun.
func (p *Parser) Calls() int { return p.count }

// Push reads the next part of the answer and returns what it adds.
func (p *Parser) Push(text string) Delta {
	p.buf += text
	for p.step() {
	}
	return p.take()
}

// End returns what was held back at the end of the answer.
func (p *Parser) End() Delta {
	switch p.state {
	case inText:
		p.addText(p.buf)
		p.out.Text += p.held
	case inReasoning:
		p.out.Reasoning += p.buf
	case inOpening, inName, inMiddle:
		p.out.Text += p.held + p.raw + p.name + p.buf
	}
	p.buf, p.held, p.raw, p.name = "", "", "", ""
	return p.take()
}

// take returns the output since the last take.
func (p *Parser) take() Delta {
	out := p.out
	p.out = Delta{}
	return out
}

// step advances by one state; it returns false if it needs more input.
func (p *Parser) step() bool {
	switch p.state {
	case inText:
		return p.stepText()
	case inReasoning:
		return p.stepReasoning()
	case inOpening:
		opening := p.f.before
		if p.count == 0 {
			opening = p.f.open + opening
		}
		return p.expect(opening, inName)
	case inName:
		n := nameLength(p.buf)
		p.name, p.buf = p.name+p.buf[:n], p.buf[n:]
		if p.buf == "" {
			return false
		}
		p.state = inMiddle
		return true
	case inMiddle:
		return p.expect(p.f.middle, inArguments)
	case inArguments:
		text, rest, done := p.args.read(p.buf)
		p.addArguments(text)
		p.buf = rest
		if done {
			p.state = inAfter
		}
		return done
	case inAfter:
		return p.expect(p.f.after, afterCall)
	case afterCalls:
		p.buf = ""
		return false
	}
	return p.stepAfterCall()
}

// stepText reads text up to a mark.
func (p *Parser) stepText() bool {
	if p.calls && p.f.marker == "" && !p.hasText {
		p.buf = strings.TrimLeft(p.buf, " \t\r\n")
		if p.buf == "" {
			return false
		}
		if strings.IndexByte(p.f.first, p.buf[0]) >= 0 {
			p.state = inOpening
			return true
		}
	}
	var marks []string
	if p.calls && p.f.marker != "" {
		marks = append(marks, p.f.marker)
	}
	if p.f.reasoning != "" && (!p.hasText || p.f.textMark != "") {
		marks = append(marks, strings.TrimRight(p.f.reasoning, "\n"))
	}
	if p.f.textMark != "" {
		marks = append(marks, p.f.textMark, "<|start|>assistant")
	}
	at, mark := find(p.buf, marks)
	p.addText(p.buf[:at])
	p.buf = p.buf[at:]
	switch {
	case mark == "":
		return false
	case p.calls && mark == p.f.marker:
		p.state, p.raw = inOpening, ""
	default:
		p.buf = p.buf[len(mark):]
		if strings.HasPrefix(p.f.reasoning, mark) {
			p.state = inReasoning
		}
	}
	return true
}

// addText adds text, without white space at its start and end.
func (p *Parser) addText(text string) {
	if !p.hasText {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	if text == "" {
		return
	}
	p.hasText = true
	text = p.held + text
	p.held = ""
	if p.calls {
		end := len(strings.TrimRight(text, " \t\r\n"))
		p.held = text[end:]
		text = text[:end]
	}
	p.out.Text += text
}

// stepReasoning reads reasoning up to its end mark or a call.
func (p *Parser) stepReasoning() bool {
	marks := []string{p.f.reasoningEnd}
	if p.calls && p.f.marker != "" {
		marks = append(marks, p.f.marker)
	}
	at, mark := find(p.buf, marks)
	p.addReasoning(p.buf[:at])
	p.buf = p.buf[at:]
	switch mark {
	case "":
		return false
	case p.f.reasoningEnd:
		p.buf, p.held = p.buf[len(mark):], ""
		p.state = inText
	default:
		p.state, p.raw = inOpening, ""
	}
	return true
}

// addReasoning adds reasoning, without white space at its start and end.
func (p *Parser) addReasoning(text string) {
	if !p.hasReasoning {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	if text == "" {
		return
	}
	p.hasReasoning = true
	text = p.held + text
	end := len(strings.TrimRight(text, " \t\r\n"))
	p.out.Reasoning += text[:end]
	p.held = text[end:]
}

// expect reads a fixed text of the format, ignoring white space, and enters the next state. Other
// input ends the call.
func (p *Parser) expect(text string, next state) bool {
	n, whole, ok := prefix(p.buf, text)
	if !ok {
		p.broken()
		return true
	}
	if !whole {
		return false
	}
	read := p.buf[:n]
	p.buf = p.buf[n:]
	p.state = next
	switch next {
	case inName:
		p.raw += read
	case inArguments:
		p.begin(read)
	}
	return true
}

// begin starts a call; read is the input after its name.
func (p *Parser) begin(read string) {
	t, known := p.kinds[p.name]
	if !known {
		p.name += read
		p.broken()
		return
	}
	p.out.Calls = append(p.out.Calls, api.CallDelta{Index: p.count, ID: p.newID(), Name: p.name})
	p.count++
	p.raw, p.name, p.held, p.hasText = "", "", "", true
	p.args = newReader(p.f, &t)
}

// addArguments adds to the arguments of the current call.
func (p *Parser) addArguments(text string) {
	if text == "" {
		return
	}
	last := len(p.out.Calls) - 1
	if last >= 0 && p.out.Calls[last].Index == p.count-1 {
		p.out.Calls[last].Arguments += text
		return
	}
	p.out.Calls = append(p.out.Calls, api.CallDelta{Index: p.count - 1, Arguments: text})
}

// broken turns a malformed call and the rest of the answer into text.
func (p *Parser) broken() {
	p.state, p.calls, p.hasText = inText, false, true
	p.out.Text += p.held + p.raw + p.name
	p.raw, p.name, p.held = "", "", ""
}

// stepAfterCall reads what follows a call: another call, the end of all calls, or text.
func (p *Parser) stepAfterCall() bool {
	p.buf = strings.TrimLeft(p.buf, " \t\r\n")
	if p.buf == "" {
		return false
	}
	if p.f.close != "" {
		if _, whole, ok := prefix(p.buf, p.f.close); ok {
			if whole {
				p.state = afterCalls
			}
			return whole
		}
	}
	_, whole, ok := prefix(p.buf, p.f.between+p.f.before)
	switch {
	case !ok:
		p.broken()
	case !whole:
		return false
	default:
		n, _, _ := prefix(p.buf, p.f.between)
		p.buf, p.state, p.raw = p.buf[n:], inOpening, p.buf[:n]
	}
	return true
}

// find returns the position of the first mark in text. If text contains no mark, at is the start of
// a possible mark that is cut off by the end of text, or len(text), and mark is empty.
func find(text string, marks []string) (at int, mark string) {
	at = len(text)
	for _, m := range marks {
		if i := strings.Index(text, m); i >= 0 && i < at {
			at, mark = i, m
		}
	}
	if mark != "" {
		return at, mark
	}
	for _, m := range marks {
		for n := min(len(m)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, m[:n]) {
				at = min(at, len(text)-n)
				break
			}
		}
	}
	return at, ""
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// prefix reports whether text starts with want, ignoring white space. It returns the bytes of text
// that it matched and whether want is complete. If text ends early, ok is true and whole is false.
func prefix(text, want string) (n int, whole, ok bool) {
	j := 0
	for j < len(want) {
		if isBlank(want[j]) {
			j++
			continue
		}
		for n < len(text) && isBlank(text[n]) {
			n++
		}
		if n == len(text) {
			return n, false, true
		}
		if text[n] != want[j] {
			return n, false, false
		}
		n++
		j++
	}
	for end := len(want); end > 0 && isBlank(want[end-1]); end-- { // skip as much as want ends with
		if n == len(text) {
			return n, false, true
		}
		if isBlank(text[n]) {
			n++
		}
	}
	return n, true, true
}
