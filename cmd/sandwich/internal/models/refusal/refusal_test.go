package refusal

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answer returns an answer with a status, headers as "name: value" and a body.
func answer(status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		resp.Header.Add(name, value)
	}
	return resp
}

// TestWait checks the times of Retry-After and RateLimit.
func TestWait(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		resp *http.Response
		want time.Duration
	}{
		{answer(429, "", "Retry-After: 12"), 12 * time.Second},
		{answer(503, "", "Retry-After: 0"), time.Second},
		{answer(429, "", "Retry-After: Fri, 02 Jan 2026 03:05:05 GMT"), time.Minute},
		{answer(429, "", "Retry-After: Fri, 02 Jan 2026 03:00:00 GMT"), 0},
		{answer(429, "", "Retry-After: Fri, 02 Jan 2026 09:00:10 GMT", "Date: Fri, 02 Jan 2026 09:00:00 GMT"),
			10 * time.Second},
		{answer(429, "", `RateLimit: "resolvers";r=0;t=55`), 55 * time.Second},
		{answer(429, "", "Retry-After: 3", `RateLimit: "api";r=0;t=55`), 3 * time.Second},
		{answer(429, "", "Retry-After: -3"), 0},
		{answer(429, "", "Retry-After: 99999999999999999999"), 0},
		{answer(429, "", "Retry-After: soon", "RateLimit: t"), 0},
		{answer(429, ""), 0},
		{answer(503, ""), 0},
		{answer(403, "", "Retry-After: 12"), 0},
	} {
		if got := Wait(c.resp, now); got != c.want {
			t.Errorf("%d %v: %s, want %s", c.resp.StatusCode, c.resp.Header, got, c.want)
		}
	}
}

// TestReason checks the texts of the services that models come from, and bounds on hostile ones.
func TestReason(t *testing.T) {
	const js, xml = "Content-Type: application/json; charset=utf-8", "Content-Type: application/xml"
	long := strings.Repeat("é", 1000)
	for _, c := range []struct {
		resp *http.Response
		want string
	}{
		{answer(403, `{"error":"body"}`, js, "X-Error-Message: Access to model a/b is restricted."),
			"Access to model a/b is restricted."},
		{answer(401, `{"error":"Invalid credentials\nin header"}`, js), "Invalid credentials in header"},
		{answer(429, `{"errors":[{"code":"TOOMANYREQUESTS","message":"the pull rate limit"}]}`, js),
			"the pull rate limit"},
		{answer(403, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>`,
			xml), "Request has expired"},
		{answer(403, "<html>no</html>", "Content-Type: text/html"), ""},
		{answer(403, `{"error":7}`, js), ""},
		{answer(403, `{`, js), ""},
		{answer(403, "", xml), ""},
		{answer(403, `{"error":"`+strings.Repeat("x", 20<<10)+`"}`, js), ""},
		{answer(403, "", "X-Error-Message: "+long), long[:300] + "..."},
	} {
		if got := Reason(c.resp); got != c.want {
			t.Errorf("%v: %q, want %q", c.resp.Header, got, c.want)
		}
	}
}
