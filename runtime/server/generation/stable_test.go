package generation

import (
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/request"
)

// TestStabilize checks which lines of a system prompt move to the last user message, and that
// nothing else changes.
func TestStabilize(t *testing.T) {
	for line, moves := range map[string]bool{
		"Today's date: 2026-11-27":                    true,
		"  - Today is Friday, November 27, 2026.":     true,
		"Current time: 10:51":                         true,
		"The current date and time is 2026-11-27":     true,
		"Date: 11/27/2026":                            true,
		"Today’s date is 27 Nov 2026":                 true,
		"Timestamp: 1795773876":                       true,
		"Today's date matters to the user":            false, // no digit
		"Never print the current time 10 times":       false,
		"Dates have the form 2026-11-27":              false,
		"Timeouts are 30 s":                           false,
		"Date: 1 " + strings.Repeat("long text ", 20): false,
	} {
		c := request.New()
		c.Messages = []api.Message{{Role: "system", Content: "You help.\n" + line + "\nBe brief."},
			{Role: "user", Content: "a"}, {Role: "assistant", Content: line}, {Role: "user", Content: line}}
		stabilize(c)
		system, user := "You help.\n"+line+"\nBe brief.", line
		if moves {
			system, user = "You help.\nBe brief.", line+"\n\n"+strings.TrimSpace(line)
		}
		m := c.Messages
		if m[0].Content != system || m[3].Content != user || m[1].Content != "a" || m[2].Content != line {
			t.Errorf("%q: %+v", line, m)
		}
		if warned := len(c.Warnings.List()) > 0; warned != moves {
			t.Errorf("%q: warnings %q", line, c.Warnings.List())
		}
	}
	c := request.New()
	c.Messages = []api.Message{{Role: "system", Content: "Date: 2026-11-27"}}
	if stabilize(c); c.Messages[0].Content != "Date: 2026-11-27" {
		t.Error("a line was moved without a user message")
	}
}
