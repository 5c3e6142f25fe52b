package chat

import (
	"slices"
	"strings"
)

// adapted returns a copy of the messages with calls and results of tools as the format or the
// repairs demand it.
func (h *History) adapted(r repairs) []Message {
	asText := r.results == allResults || !h.format.Native || !h.format.Written
	out := make([]Message, 0, len(h.messages)+2)
	called := false // the last message that is not a result has calls
	for i, m := range h.messages {
		switch {
		case m.Role == tool:
			if r.results == allResults || !h.format.Native || r.results == orphans && !called {
				out = appendResult(out, m)
				continue
			}
		case len(m.Calls) > 0 && asText:
			called = true
			m.parts = partsOf(part{strings.TrimLeft(h.given[i].Content+"\n"+h.format.Write(m.Calls), "\n"), origin(i)})
			m.Calls = nil
		default:
			called = len(m.Calls) > 0
		}
		out = append(out, m)
	}
	if (r.split || h.format.OneCall()) && !asText {
		out = splitCalls(out)
	}
	return out
}

// splitCalls makes a message of each call, with the call's results after it. Other results follow
// the last call.
func splitCalls(list []Message) []Message {
	out := make([]Message, 0, len(list)+4)
	for len(list) > 0 {
		m := list[0]
		n := 1 // messages of the calls and their results
		for n < len(list) && list[n].Role == tool {
			n++
		}
		taken := make([]bool, n)
		for i, call := range m.Calls {
			one := m
			one.Calls = m.Calls[i : i+1]
			if i > 0 {
				one.parts, one.Reasoning = nil, ""
			}
			out = append(out, one)
			for j := 1; j < n; j++ {
				if !taken[j] && (i == len(m.Calls)-1 || list[j].CallID.Plain == call.ID) {
					taken[j] = true
					out = append(out, list[j])
				}
			}
		}
		if len(m.Calls) == 0 {
			n = 1
			out = append(out, m)
		}
		list = list[n:]
	}
	return out
}

// appendResult appends a tool result as user text. Results in a row are one message.
func appendResult(list []Message, m Message) []Message {
	parts := slices.Concat([]part{{text: "<tool_response>\n"}}, m.parts, []part{{text: "\n</tool_response>"}})
	m = Message{Role: user, parts: parts, result: true}
	if last := len(list) - 1; last >= 0 && list[last].result {
		list[last] = list[last].joined(m, "\n")
		return list
	}
	return append(list, m)
}

// explained adds a description of the tools after the first system message, or in front.
func (h *History) explained(list []Message) []Message {
	if h.explanation == nil {
		intro, declarations, outro := h.format.Explanation(h.tools)
		h.explanation = partsOf(part{text: intro}, part{declarations, h.ToolsOrigin()}, part{text: outro})
	}
	m := Message{Role: system, ours: true, parts: h.explanation}
	at := 0
	if len(list) > 0 && list[0].Role == system {
		at = 1
	}
	return slices.Insert(list, at, m)
}

// joinExplanation merges a description of the tools with the system message before it.
func joinExplanation(list []Message) []Message {
	if len(list) > 1 && list[1].ours {
		list[0] = list[0].joined(list[1], "\n\n")
		return slices.Delete(list, 1, 2)
	}
	return list
}
