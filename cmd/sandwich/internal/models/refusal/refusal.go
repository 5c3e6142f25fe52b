// Package refusal reads why a server refuses a request, and when the request may be repeated.
package refusal

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LongestWait is the longest time that a server may ask a client to wait. Servers with limits for
// each five minutes ask for less.
const LongestWait = 6 * time.Minute

// Wait returns the time after which the server of an answer accepts the request again: that of the
// header Retry-After, or for status 429 that of RateLimit, as the Hugging Face hub sends it. It
// returns 0 if the answer states none or its status is not one that passes.
func Wait(resp *http.Response, now time.Time) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return 0
	}
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if d, ok := seconds(text); ok {
		return d
	}
	if at, err := http.ParseTime(text); err == nil {
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			now = date // the clocks may differ
		}
		return max(0, at.Sub(now))
	}
	if m := reset.FindStringSubmatch(resp.Header.Get("RateLimit")); m != nil {
		d, _ := seconds(m[1])
		return d
	}
	return 0
}

// reset matches the seconds until a limit is reset in a header such as "api";r=0;t=55.
var reset = regexp.MustCompile(`;\s*t=(\d{1,9})\b`)

// seconds parses a number of seconds. The result is at least 1 s: servers round down.
func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return max(1, time.Duration(n)) * time.Second, err == nil
}

// Limits of the text of a server.
const (
	maxBody   = 16 << 10 // bytes of a body that are read
	maxReason = 300      // bytes of the result
)

// Reason returns what the server says about its refusal, "" if it says nothing: the header
// X-Error-Message of the Hugging Face hub, or the message of a JSON or XML document. It may read
// the body. The text is not trusted and may have control characters.
func Reason(resp *http.Response) string {
	if text := clip(resp.Header.Get("X-Error-Message")); text != "" {
		return text
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isJSON, isXML := strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml")
	if !isJSON && !isXML {
		return ""
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return ""
	}
	if m := xmlMessage.FindSubmatch(body); isXML && m != nil {
		return clip(string(m[1]))
	}
	return clip(jsonMessage(body))
}

// xmlMessage matches the message of a storage service.
var xmlMessage = regexp.MustCompile(`<Message>([^<]+)</Message>`)

// jsonMessage returns the message of the hub's {"error":...}, or the first one of a registry's
// {"errors":[{"message":...}]}.
func jsonMessage(body []byte) string {
	var hub struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &hub) == nil && hub.Error != "" {
		return hub.Error
	}
	var registry struct {
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if json.Unmarshal(body, &registry) == nil && len(registry.Errors) > 0 {
		return registry.Errors[0].Message
	}
	return ""
}

func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
