package server

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

// priorityHeader states class and priority like the field priority.
const priorityHeader = "X-Sandwich-Priority"

// Response headers with the state of the queue when the request arrived.
const (
	queuePlace = "X-Sandwich-Queue-Place" // number of requests that run earlier
	queueWait  = "X-Sandwich-Queue-Wait"  // estimated seconds until the request runs
	queueFirst = "X-Sandwich-First-Token" // estimated seconds until the first token
	queueCache = "X-Sandwich-Cache"       // cached tokens of the prompt and the first token that differs
)

// urgency is the class and the priority that a request or an API key states.
type urgency struct {
	class    api.Class
	priority int32
	number   bool // priority was stated as a number
}

// named returns the urgency of a class stated without a number.
func named(c api.Class) urgency { return urgency{class: c, priority: int32(c)} }

// parseUrgency reads a class name, or a number as in vLLM: lower numbers run earlier, numbers above
// 0 are proactive.
func parseUrgency(text string) (u urgency, ok bool) {
	switch text {
	case api.Reactive.String():
		return named(api.Reactive), true
	case api.Proactive.String():
		return named(api.Proactive), true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	u = urgency{priority: int32(n), number: true}
	if n > 0 {
		u.class = api.Proactive
	}
	return u, err == nil
}

const wantClass = `must be "reactive", "proactive" or an integer from -2147483648 to 2147483647; ` +
	"numbers above 0 are proactive, and lower numbers run first"

// class reads the fields that state a class.
func (b *common) class(c *call) *apierr.Error {
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
		u, ok := parseUrgency(text)
		if !ok {
			return apierr.Invalid("priority", wantClass)
		}
		if e := c.state(u, "priority", text); e != nil {
			return e
		}
	}
	if b.ServiceTier != nil && *b.ServiceTier == "flex" {
		return c.state(named(api.Proactive), "service_tier", "flex")
	}
	return nil
}

// state records the urgency that the request states in the field or header where. It returns an
// error if it contradicts an earlier statement.
func (c *call) state(u urgency, where, value string) *apierr.Error {
	switch {
	case c.stated && c.Class != u.class:
		return apierr.Invalid(where, "is %s, which means %s, but the request states %s elsewhere; state it once",
			jsontext.Clip(value),
			u.class, c.Class)
	case c.placed && u.number && c.Priority != u.priority:
		return apierr.Invalid(where, "is %s, but the request states %d elsewhere; state it once",
			jsontext.Clip(value), c.Priority)
	case !c.placed:
		c.Priority = u.priority
	}
	c.Class, c.stated, c.placed = u.class, true, c.placed || u.number
	return nil
}

// classify sets the class and priority of a call from its body, its header, or its API key.
func (c *call) classify(h http.Header, ofKey urgency) *apierr.Error {
	if text := strings.TrimSpace(h.Get(priorityHeader)); text != "" {
		u, ok := parseUrgency(text)
		if !ok {
			return apierr.Invalid(priorityHeader, wantClass)
		}
		return c.state(u, priorityHeader, text)
	}
	if !c.stated {
		c.Class, c.Priority = ofKey.class, ofKey.priority
	}
	return nil
}

// keyOf splits a line of a key file; see CheckKey.
func keyOf(line string) (key string, u urgency, ok bool) {
	key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if rest = strings.TrimSpace(rest); rest == "" {
		return key, named(api.Reactive), true
	}
	text, stated := strings.CutPrefix(rest, "class=")
	u, ok = parseUrgency(text)
	return key, u, ok && stated
}

// CheckKey reports whether a line of a key file is valid: a key, optionally followed by the default
// class or priority of its requests, such as class=proactive or class=7.
func CheckKey(line string) bool {
	_, _, ok := keyOf(line)
	return ok
}
