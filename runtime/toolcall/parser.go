package toolcall

import (
	"strings"

	"sandwich/runtime/api"
)

// Delta is what a piece of an answer adds to it.
type Delta struct {
	Text, Reasoning string
	Calls           []api.CallDelta
}

// Parser reads one answer as it comes. It never fails: what begins as a call and does not go on as
// one is text.
type Parser struct {
	f     *Format
	calls bool            // calls are looked for
	kinds map[string]tool // by name
	newID func() string

	buf   string // not read yet
	state state
	raw   string // of a call until its name is whole, should it be none
	name  string // behind raw
	blank string // held back at the end of the text: a call may follow
	said  bool   // there was text
	count int    // calls so far
	mused bool   // there was reasoning
	args  reader // of the call at hand
	out   Delta
}

type state uint8

const (
	inText state = iota
	inReasoning
	inOpening // of a call, up to its name
	inName
	inMiddle
	inArguments
	inAfter
	behind // a whole call
	over   // behind the end of all calls
)

// NewParser reads an answer in the format. tools are those that may be called, none where calls are
// text; thinking tells that the prompt ends inside reasoning; newID names calls.
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

// Calls is how many calls have begun.
func (p *Parser) Calls() int { return p.count }

// Push reads more of the answer.
func (p *Parser) Push(text string) Delta {
	p.buf += text
	for p.step() {
	}
	return p.take()
}

// End reads what was held back at the end of the answer.
func (p *Parser) End() Delta {
	switch p.state {
	case inText:
		p.say(p.buf)
		p.out.Text += p.blank
	case inReasoning:
		p.out.Reasoning += p.buf
	case inOpening, inName, inMiddle:
		p.out.Text += p.blank + p.raw + p.name + p.buf
	}
	p.buf, p.blank, p.raw, p.name = "", "", "", ""
	return p.take()
}

func (p *Parser) take() Delta {
	out := p.out
	p.out = Delta{}
	return out
}

// step reads as much as one state takes; false where more of the answer is needed.
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
		p.argue(text)
		p.buf = rest
		if done {
			p.state = inAfter
		}
		return done
	case inAfter:
		return p.expect(p.f.after, behind)
	case over:
		p.buf = ""
		return false
	}
	return p.stepBehind()
}

// stepText reads text up to a mark.
func (p *Parser) stepText() bool {
	if p.calls && p.f.marker == "" && !p.said {
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
	if p.f.reasoning != "" && (!p.said || p.f.says != "") {
		marks = append(marks, strings.TrimRight(p.f.reasoning, "\n"))
	}
	if p.f.says != "" {
		marks = append(marks, p.f.says, "<|start|>assistant")
	}
	at, mark := find(p.buf, marks)
	p.say(p.buf[:at])
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

// say adds text, without blanks at its begin and its end.
func (p *Parser) say(text string) {
	if !p.said {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	if text == "" {
		return
	}
	p.said = true
	text = p.blank + text
	p.blank = ""
	if p.calls {
		end := len(strings.TrimRight(text, " \t\r\n"))
		p.blank = text[end:]
		text = text[:end]
	}
	p.out.Text += text
}

func (p *Parser) stepReasoning() bool {
	marks := []string{p.f.reasoned}
	if p.calls && p.f.marker != "" {
		marks = append(marks, p.f.marker)
	}
	at, mark := find(p.buf, marks)
	p.muse(p.buf[:at])
	p.buf = p.buf[at:]
	switch mark {
	case "":
		return false
	case p.f.reasoned:
		p.buf, p.blank = p.buf[len(mark):], ""
		p.state = inText
	default:
		p.state, p.raw = inOpening, ""
	}
	return true
}

// muse adds reasoning, without blanks at its begin and its end.
func (p *Parser) muse(text string) {
	if !p.mused {
		text = strings.TrimLeft(text, " \t\r\n")
	}
	if text == "" {
		return
	}
	p.mused = true
	text = p.blank + text
	end := len(strings.TrimRight(text, " \t\r\n"))
	p.out.Reasoning += text[:end]
	p.blank = text[end:]
}

// expect reads a text of the format, whatever its blanks, and goes on with the next state. Another
// text ends the call.
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

// begin begins a call; read is what stood behind its name.
func (p *Parser) begin(read string) {
	t, known := p.kinds[p.name]
	if !known {
		p.name += read
		p.broken()
		return
	}
	p.out.Calls = append(p.out.Calls, api.CallDelta{Index: p.count, ID: p.newID(), Name: p.name})
	p.count++
	p.raw, p.name, p.blank, p.said = "", "", "", true
	p.args = newReader(p.f, &t)
}

// argue adds to the arguments of the call at hand.
func (p *Parser) argue(text string) {
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

// broken takes what there is, and all that follows, as text.
func (p *Parser) broken() {
	p.state, p.calls, p.said = inText, false, true
	p.out.Text += p.blank + p.raw + p.name
	p.raw, p.name, p.blank = "", "", ""
}

// stepBehind goes on behind a call with another one, or with nothing that is of interest.
func (p *Parser) stepBehind() bool {
	p.buf = strings.TrimLeft(p.buf, " \t\r\n")
	if p.buf == "" {
		return false
	}
	if p.f.close != "" {
		if _, whole, ok := prefix(p.buf, p.f.close); ok {
			if whole {
				p.state = over
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

// find is where the first of the marks is in text. Without one it is where one may begin that the
// end of the text cuts.
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

// prefix tells whether text begins as want does, blanks aside: how many bytes of text were read for
// it, and whether all of want was there.
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
	for end := len(want); end > 0 && isBlank(want[end-1]); end-- { // as many as it ends with
		if n == len(text) {
			return n, false, true
		}
		if isBlank(text[n]) {
			n++
		}
	}
	return n, true, true
}
