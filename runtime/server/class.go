package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"sandwich/runtime/api"
)

// A request is reactive unless it says otherwise: by priority, by service_tier, or by a header,
// for clients that cannot change their body; where it says nothing, its key does. What one
// request says twice it must say alike. A number is a place in the class, too.

// priorityHeader states class and place like the field priority.
const priorityHeader = "X-Sandwich-Priority"

// Headers of an answer that say how the request stood when it came.
const (
	queuePlace = "X-Sandwich-Queue-Place" // requests that wait before it
	queueWait  = "X-Sandwich-Queue-Wait"  // seconds that it will wait, as far as is known
	queueFirst = "X-Sandwich-First-Token" // seconds until its first token, likewise
	queueCache = "X-Sandwich-Cache"       // what of its prompt is cached, and where it differs from that
)

// urgency is what a request or its key states: a class, and a place in it.
type urgency struct {
	class    api.Class
	priority int32
	number   bool // the place is stated, too
}

// named is the urgency of who states a class and no place in it.
func named(c api.Class) urgency { return urgency{class: c, priority: int32(c)} }

// parseUrgency reads a class by name, or a number as vLLM counts, where lower is earlier and
// what is above 0 can wait.
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

const wantClass = `must be "reactive", "proactive" or a whole number from -2147483648 to 2147483647, ` +
	"of which those above 0 are proactive and the lower ones go first"

// class reads the fields that state one.
func (b *common) class(c *call) *apiError {
	if !isNull(b.Priority) {
		text := string(b.Priority)
		if text[0] == '"' && json.Unmarshal(b.Priority, &text) == nil {
			if _, err := strconv.Atoi(text); err == nil {
				text = "" // a number in quotes is no name
			}
		}
		if n, whole := parseWhole(text); whole {
			text = strconv.FormatInt(n, 10)
		}
		u, ok := parseUrgency(text)
		if !ok {
			return invalid("priority", wantClass)
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

// state notes an urgency that the request states, maybe in one more place.
func (c *call) state(u urgency, where, value string) *apiError {
	switch {
	case c.stated && c.Class != u.class:
		return invalid(where, "is %s, which says %s, but the request says %s elsewhere; say it once", clip(value),
			u.class, c.Class)
	case c.placed && u.number && c.Priority != u.priority:
		return invalid(where, "is %s, but the request says %d elsewhere; say it once", clip(value), c.Priority)
	case !c.placed:
		c.Priority = u.priority
	}
	c.Class, c.stated, c.placed = u.class, true, c.placed || u.number
	return nil
}

// classify gives a call its urgency: of its body, its header, or its key.
func (c *call) classify(h http.Header, ofKey urgency) *apiError {
	if text := strings.TrimSpace(h.Get(priorityHeader)); text != "" {
		u, ok := parseUrgency(text)
		if !ok {
			return invalid(priorityHeader, wantClass)
		}
		return c.state(u, priorityHeader, text)
	}
	if !c.stated {
		c.Class, c.Priority = ofKey.class, ofKey.priority
	}
	return nil
}

// keyOf parts a line of a key file as CheckKey wants it.
func keyOf(line string) (key string, u urgency, ok bool) {
	key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if rest = strings.TrimSpace(rest); rest == "" {
		return key, named(api.Reactive), true
	}
	text, stated := strings.CutPrefix(rest, "class=")
	u, ok = parseUrgency(text)
	return key, u, ok && stated
}

// CheckKey says whether a line of a key file is one: the key, and behind it nothing or the urgency
// of requests that state none, as class=proactive or class=7.
func CheckKey(line string) bool {
	_, _, ok := keyOf(line)
	return ok
}
