package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// many returns n copies of a text, in which # is the index.
func many(n int, piece string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.ReplaceAll(piece, "#", fmt.Sprint(i))
	}
	return strings.Join(out, ",")
}

// hostile sends requests to one server.
type hostile struct {
	url string
}

// post returns the status and the whole answer, or the first most bytes if most is not 0, after
// which it closes the connection.
func (h hostile) post(ctx context.Context, path, key, body string, most int64) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var in io.Reader = resp.Body
	if most > 0 {
		in = io.LimitReader(in, most)
	}
	text, err := io.ReadAll(in)
	return resp.StatusCode, string(text), err
}

const user = `"messages":[{"role":"user","content":"Go on."}],"max_tokens":30`

func format(schema string) string {
	return `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` + schema + `}}}`
}

func withTools(tools, more string) string {
	return `{` + user + `,"tools":[` + tools + `]` + more + `}`
}

func tool(name, parameters string) string {
	return `{"type":"function","function":{"name":"` + name + `","parameters":` + parameters + `}}`
}

// hostileRequests are requests that break servers, with the expected status and a part of the
// answer.
var hostileRequests = []struct {
	name, path, body string
	status           int
	has              string
}{
	{"a cycle without a base", chatPath,
		format(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`), 400, "#"},
	{"an endless object", chatPath,
		format(`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"}},"type":"object","required":["x"]}}}`), 400, "#"},
	{"a cycle of allOf", chatPath,
		format(`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"type":"object"}]}}}`), 400, "#"},
	{"10^5 alternatives", chatPath, format(`{"anyOf":[` + many(100_000, `{"const":"v#"}`) + `]}`), 0, ""},
	{"10^5 objects", chatPath, format(`{"anyOf":[` + many(50_000, `{"type":"object","properties":{"a#":{}}}`) + `]}`),
		0, ""},
	{"an exploding expression", chatPath, format(`{"type":"string","pattern":"^(a|a)*(a|b){300}$"}`), 0, ""},
	{"an expression with a memory", chatPath, format(`{"type":"string","pattern":"(a|b| ).{300}$"}`), 0, ""},
	{"nested counts", chatPath, format(`{"type":"string","pattern":"((a{1,100}){1,100}){1,100}"}`), 0, ""},
	{"multiples", chatPath, format(`{"type":"object","properties":{` + many(20,
		`"p#":{"type":"integer","multipleOf":40#1,"maximum":1#}`) + `}}`), 0, ""},
	{"a reference to the network", chatPath, format(`{"$ref":"http://169.254.169.254/latest/meta-data"}`), 400,
		"#/$ref"},
	{"a reference to a file", chatPath, format(`{"$ref":"file:///etc/passwd"}`), 400, "#/$ref"},
	{"a deep schema", chatPath, format(strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5000)), 400,
		"deep"},
	{"a grammar that begins with itself", chatPath, `{` + user + `,"grammar":"root ::= root \"a\" | \"b\""}`, 400,
		"begins with itself"},
	{"tools of equal names", chatPath, withTools(tool("f", `{}`)+","+tool("f", `{}`), ""), 400, "tools[1]"},
	{"broken arguments in history", chatPath,
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},{"role":"tool","tool_call_id":"a","content":"1"}],"max_tokens":3}`, 200, "messages[1].tool_calls[0].function.arguments"},
	{"a result without a call", chatPath,
		`{"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"z","content":"1"}],"max_tokens":3}`, 200,
		"messages[1].tool_call_id"},
	{"a result without a call, Anthropic", "/v1/messages",
		`{"max_tokens":3,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":"1"}]}]}`, 200, "messages[0].content[0].tool_use_id"},
	{"a schema of a tool that nothing satisfies", chatPath,
		withTools(tool("f", `{"type":"object","required":["a"],"properties":{"a":false}}`),
			`,"tool_choice":"required"`), 0, ""},
	{"1,025 tools", chatPath, withTools(many(1025, `{"type":"function","function":{"name":"f#"}}`), ""), 400, "1024"},
}

const chatPath = "/v1/chat/completions"

// TestHostile checks that each request gets a clear answer while another client is served, and that
// the server stays up.
func TestHostile(t *testing.T) {
	h := hostile{start(t, "--ctx", "4096")}
	ctx, stop := context.WithCancel(t.Context())
	var other sync.WaitGroup
	var worst time.Duration
	asked := 0
	other.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			status, text, err := h.post(ctx, chatPath, otherKey,
				`{"messages":[{"role":"user","content":"Hi"}],"max_tokens":4}`, 0)
			if ctx.Err() == nil && (err != nil || status != 200) {
				t.Errorf("the other: %d %s %v", status, text, err)
				return
			}
			worst = max(worst, time.Since(began))
			asked++
		}
	})
	for _, c := range hostileRequests {
		began := time.Now()
		status, text, err := h.post(ctx, c.path, key, c.body, 0)
		took := time.Since(began)
		refused := status == 400 && strings.Contains(text, `"error"`)
		if err != nil || c.status != 0 && status != c.status || status != 200 && !refused || !strings.Contains(text,
			c.has) ||
			took > 20*time.Second {
			t.Errorf("%s: %d %.300s %v after %v", c.name, status, text, err, took)
		}
		t.Logf("%s: %d after %v %.160s", c.name, status, took.Round(time.Millisecond), text)
	}
	h.chains(t, ctx)
	h.stops(t, ctx)
	stop()
	other.Wait()
	t.Logf("the other client sent %d requests and waited %v at most", asked, worst.Round(time.Millisecond))
	if status, text, err := h.post(t.Context(), chatPath, key, `{`+user+`}`, 0); status != 200 {
		t.Errorf("afterwards: %d %s %v", status, text, err)
	}
}

// chains continues an answer of another key, and a chain of 10^4 answers.
func (h hostile) chains(t *testing.T, ctx context.Context) {
	last := ""
	ask := func(key, before string) (int, string) {
		body := `{"input":"x","max_output_tokens":1` + before + `}`
		status, text, err := h.post(ctx, "/v1/responses", key, body, 0)
		if err != nil {
			t.Error(err)
		}
		return status, text
	}
	refusedAt, why := 0, ""
	for i := range 10_000 {
		status, text := ask(key, last)
		if status != 200 {
			refusedAt, why = i, text
			if status != 400 {
				t.Errorf("link %d: %d %.300s", i, status, text)
			}
			break
		}
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatal(err)
		}
		last = `,"previous_response_id":"` + made.ID + `"`
		if i == 0 {
			if status, text := ask(otherKey, last); status != 400 || !strings.Contains(text,
				"previous_response_not_found") {
				t.Errorf("an answer of another key: %d %s", status, text)
			}
		}
	}
	t.Logf("a chain of answers is refused at link %d: %.200s", refusedAt, why)
	if refusedAt == 0 {
		t.Error("a chain of 10^4 answers has no end")
	}
}

// stops closes streams in the middle of a call.
func (h hostile) stops(t *testing.T, ctx context.Context) {
	body := withTools(tool("write_file",
		`{"type":"object","properties":{"path":{"type":"string","minLength":2000}},"required":["path"]}`),
		`,"tool_choice":"required","stream":true`)
	body = strings.Replace(body, `"max_tokens":30`, `"max_tokens":2000`, 1)
	for range 20 {
		ctx, gone := context.WithTimeout(ctx, time.Minute)
		_, text, err := h.post(ctx, chatPath, key, body, 1500)
		gone()
		if err != nil || !strings.Contains(text, "tool_calls") {
			t.Errorf("a stream that is left: %.200s %v", text, err)
		}
	}
	for range 600 {
		resp, err := http.Get(h.url + "/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r, _ := http.NewRequest(http.MethodGet, h.url+"/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		if resp, err = http.DefaultClient.Do(r); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if n := inFlight(text); n <= 2 { // the other client's request, and this one
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("streams whose readers left are still in flight after a minute")
}

// inFlight reads the number of running requests from /metrics.
func inFlight(text []byte) int {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "sandwich_http_requests_in_flight %d", &n); err == nil {
			return n
		}
	}
	return -1
}
