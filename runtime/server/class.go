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
// request says twice it must say alike.

// priorityHeader states the class like the field priority.
const priorityHeader = "X-Sandwich-Priority"

// Headers of an answer that say how the request stood when it came.
const (
	queuePlace = "X-Sandwich-Queue-Place" // requests that wait before it
	queueWait  = "X-Sandwich-Queue-Wait"  // seconds that it will wait, as far as is known
	queueFirst = "X-Sandwich-First-Token" // seconds until its first token, likewise
)

// parseClass reads a class: by name, or by a number as vLLM counts, where lower is earlier and
// what is above 0 can wait.
func parseClass(text string) (c api.Class, ok bool) {
	switch text {
	case api.Reactive.String():
		return api.Reactive, true
	case api.Proactive.String():
		return api.Proactive, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if n > 0 {
		c = api.Proactive
	}
	return c, err == nil
}

const wantClass = `must be "reactive", "proactive" or a whole number from -2147483648 to 2147483647, ` +
	"of which those above 0 are proactive"

// class reads the fields that state one.
func (b *common) class(c *call) *apiError {
	if !isNull(b.Priority) {
		text := string(b.Priority)
		if text[0] == '"' && json.Unmarshal(b.Priority, &text) == nil {
			if _, err := strconv.Atoi(text); err == nil {
				text = "" // a number in quotes is no name
			}
		}
		class, ok := parseClass(text)
		if !ok {
			return invalid("priority", wantClass)
		}
		c.Class, c.stated = class, true
	}
	if b.ServiceTier != nil && *b.ServiceTier == "flex" {
		return c.state(api.Proactive, "service_tier", "flex")
	}
	return nil
}

// state notes a class that the request states in one more place.
func (c *call) state(class api.Class, where, value string) *apiError {
	if c.stated && c.Class != class {
		return invalid(where, "is %s, which says %s, but the request says %s elsewhere; say it once", clip(value),
			class, c.Class)
	}
	c.Class, c.stated = class, true
	return nil
}

// classify gives a call its class: of its body, its header, or its key.
func (c *call) classify(h http.Header, ofKey api.Class) *apiError {
	if text := strings.TrimSpace(h.Get(priorityHeader)); text != "" {
		class, ok := parseClass(text)
		if !ok {
			return invalid(priorityHeader, wantClass)
		}
		return c.state(class, priorityHeader, text)
	}
	if !c.stated {
		c.Class = ofKey
	}
	return nil
}

// KeyOf parts a line of a key file: the key, and the class of requests that state none, which may
// stand behind it as class=proactive. ok is false where something else stands there.
func KeyOf(line string) (key string, class api.Class, ok bool) {
	key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if rest = strings.TrimSpace(rest); rest == "" {
		return key, api.Reactive, true
	}
	name, named := strings.CutPrefix(rest, "class=")
	class, ok = parseClass(name)
	return key, class, ok && named
}
