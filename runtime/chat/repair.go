package chat

import (
	"slices"
)

// messagesOf returns the indexes of the given messages that m has texts of.
func messagesOf(m *Message) (list []int) {
	for _, p := range m.parts {
		if p.origin != 0 {
			list = append(list, int(p.origin)-1)
		}
	}
	return list
}

// systemFirst merges all system texts into one message in front, unless no user message is left
// that they could come before.
func (v *Version) systemFirst(list []Message) []Message {
	if !slices.ContainsFunc(list, isUser) {
		return joinExplanation(list)
	}
	front := Message{Role: system, ours: true}
	rest := list[:0:0]
	for _, m := range list {
		if m.Role != system {
			rest = append(rest, m)
			continue
		}
		if m.blank() {
			continue
		}
		if len(rest) > 0 {
			v.hoisted = append(v.hoisted, messagesOf(&m)...)
		}
		front = front.joined(m, "\n\n")
	}
	if len(front.parts) == 0 {
		return rest
	}
	return slices.Insert(rest, 0, front)
}

func isUser(m Message) bool { return m.Role == user }

// Marks around a system text in a user message.
const (
	systemOpen  = "<system>\n"
	systemClose = "\n</system>"
)

// systemAsUser makes each system message a user message, marked as system text, and merges it with
// a user message that follows.
func (v *Version) systemAsUser(list []Message) []Message {
	out := list[:0:0]
	open := false // the last message is a system text
	for _, m := range list {
		isSystem := m.Role == system
		if isSystem {
			if m.blank() {
				continue
			}
			m.Role = user
			if !m.ours {
				v.asUser = append(v.asUser, messagesOf(&m)...)
				m.parts = slices.Concat([]part{{text: systemOpen}}, m.parts, []part{{text: systemClose}})
			}
		}
		if open && m.Role == user {
			last := len(out) - 1
			out[last] = out[last].joined(m, "\n\n")
		} else {
			out = append(out, m)
		}
		open = isSystem
	}
	return out
}

// joinRoles merges adjacent messages of one role: of users, of systems, and of the assistant where
// the first calls no tool.
func joinRoles(list []Message) []Message {
	out := list[:0:0]
	for _, m := range list {
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role && m.Role != tool && len(out[last].Calls) == 0 {
			out[last] = out[last].joined(m, "\n\n")
			continue
		}
		out = append(out, m)
	}
	return out
}

// alternate lets a conversation begin with a user message and adds an assistant message between a
// tool's result, or a call without result, and a user message. Where there is no user message, the
// last system message becomes one. Added messages have the given text.
func (v *Version) alternate(list []Message, text string) []Message {
	if !slices.ContainsFunc(list, isUser) {
		for i := len(list) - 1; i >= 0; i-- {
			if m := &list[i]; m.Role == system && !m.ours && !m.blank() {
				m.Role = user
				v.asUser = append(v.asUser, messagesOf(m)...)
				break
			}
		}
	}
	added := func(role string) Message { return Message{Role: role, parts: partsOf(part{text: text})} }
	out := list[:0:0]
	begun := false // a message came that is not system text
	for _, m := range list {
		if !begun && m.Role == assistant {
			out = append(out, added(user))
		}
		if last := len(out) - 1; last >= 0 && isUser(m) && (out[last].Role == tool || len(out[last].Calls) > 0) {
			out = append(out, added(assistant))
		}
		begun = begun || m.Role != system
		out = append(out, m)
	}
	if !slices.ContainsFunc(out, isUser) {
		out = append(out, added(user))
	}
	return out
}
