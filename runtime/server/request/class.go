package request

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// Requests are reactive by default. A client may state another class by the field priority, the
// field service_tier or a header, else the class of its API key applies. Contradicting statements
// in one request are refused. A number also sets the priority within the class.

// PriorityHeader states class and priority like the field priority.
const PriorityHeader = "X-Sandwich-Priority"

// Urgency is the class and the priority that a request or an API key states.
type Urgency struct {
	Class    api.Class
	Priority int32
	number   bool // priority was stated as a number
}

// urgencyOf returns the urgency of a class stated without a number.
func urgencyOf(c api.Class) Urgency { return Urgency{Class: c, Priority: int32(c)} }

// ParseUrgency reads a class name, or a number as in vLLM: lower numbers run earlier, numbers above
// 0 are proactive.
func ParseUrgency(text string) (u Urgency, ok bool) {
	switch text {
	case api.Reactive.String():
		return urgencyOf(api.Reactive), true
	case api.Proactive.String():
		return urgencyOf(api.Proactive), true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	u = Urgency{Priority: int32(n), number: true}
	if n > 0 {
		u.Class = api.Proactive
	}
	return u, err == nil
}

const classHint = `must be "reactive", "proactive" or an integer from -2147483648 to 2147483647; ` +
	"numbers above 0 are proactive, and lower numbers run first"

// ReadClass reads the fields that state a class.
func (b *Common) ReadClass(c *Call) *apierr.Error {
	if !jsontext.IsNull(b.Priority) {
		text := string(b.Priority)
		if text[0] == '"' && json.Unmarshal(b.Priority, &text) == nil {
			if _, err := strconv.Atoi(text); err == nil {
				text = "" // a quoted number is not a class name
			}
		}
		if n, whole := jsontext.ParseInteger(text); whole {
			text = strconv.FormatInt(n, 10)
		}
		u, ok := ParseUrgency(text)
		if !ok {
			return apierr.Invalid("priority", classHint)
		}
		if e := c.setUrgency(u, "priority", text); e != nil {
			return e
		}
	}
	if b.ServiceTier != nil && *b.ServiceTier == "flex" {
		return c.setUrgency(urgencyOf(api.Proactive), "service_tier", "flex")
	}
	return nil
}

// setUrgency records the urgency that the request states in the field or header where. It returns
// an error if it contradicts an earlier statement.
func (c *Call) setUrgency(u Urgency, where, value string) *apierr.Error {
	switch {
	case c.stated && c.Class != u.Class:
		return apierr.Invalid(where, "is %s, which means %s, but the request states %s elsewhere; state it once",
			jsontext.Clip(value),
			u.Class, c.Class)
	case c.prioritySet && u.number && c.Priority != u.Priority:
		return apierr.Invalid(where, "is %s, but the request states %d elsewhere; state it once",
			jsontext.Clip(value), c.Priority)
	case !c.prioritySet:
		c.Priority = u.Priority
	}
	c.Class, c.stated, c.prioritySet = u.Class, true, c.prioritySet || u.number
	return nil
}

// Classify sets the class and priority of a call from its body, its header, or its API key.
func (c *Call) Classify(h http.Header, ofKey Urgency) *apierr.Error {
	if text := strings.TrimSpace(h.Get(PriorityHeader)); text != "" {
		u, ok := ParseUrgency(text)
		if !ok {
			return apierr.Invalid(PriorityHeader, classHint)
		}
		return c.setUrgency(u, PriorityHeader, text)
	}
	if !c.stated {
		c.Class, c.Priority = ofKey.Class, ofKey.Priority
	}
	return nil
}

// ParseKey splits a line of a key file; see CheckKey.
func ParseKey(line string) (key string, u Urgency, ok bool) {
	words := strings.Fields(line)
	switch len(words) {
	case 0:
		return "", urgencyOf(api.Reactive), true
	case 1:
		return words[0], urgencyOf(api.Reactive), true
	}
	text, stated := strings.CutPrefix(words[1], "class=")
	u, ok = ParseUrgency(text)
	return words[0], u, ok && stated && len(words) == 2
}

// CheckKey reports whether a line of a key file is valid: a key, optionally followed by the default
// class or priority of its requests, such as class=proactive or class=7.
func CheckKey(line string) bool {
	_, _, ok := ParseKey(line)
	return ok
}
