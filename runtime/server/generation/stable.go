package generation

import (
	"regexp"
	"strings"

	"sandwich/runtime/server/request"
)

// volatileLine matches a line of a system prompt that gives the date or the time, as agents write
// it. It changes from request to request and would defeat the prefix cache.
var volatileLine = regexp.MustCompile(`(?i)^[\s>*-]*(?:` +
	`today(?:'s|’s)? (?:date|is)|(?:the )?current (?:local )?(?:date|time|datetime)|date|time|timestamp)\b.{0,120}$`)

// volatile reports whether a line gives a date or a time.
func volatile(line string) bool {
	return strings.ContainsAny(line, "0123456789") && volatileLine.MatchString(line)
}

// stabilize moves volatile lines of the system prompt to the end of the last user message, so that
// the beginning of the prompt is the same in each request. It reports this as a warning.
func stabilize(c *request.Call) {
	last := -1
	for i := range c.Messages {
		if c.Messages[i].Role == "user" {
			last = i
		}
	}
	if last < 0 {
		return
	}
	var moved []string
	for i := range c.Messages[:last] {
		m := &c.Messages[i]
		if m.Role != "system" {
			continue
		}
		var kept []string
		for _, line := range strings.Split(m.Content, "\n") {
			if volatile(line) {
				moved = append(moved, strings.TrimSpace(line))
			} else {
				kept = append(kept, line)
			}
		}
		m.Content = strings.Join(kept, "\n")
	}
	if len(moved) == 0 {
		return
	}
	c.Messages[last].Content += "\n\n" + strings.Join(moved, "\n")
	c.Warnings.Add("system: a line with the date or the time was moved to the end of the last user message "+
		"(--stable-prefix): %s", strings.Join(moved, "; "))
}
