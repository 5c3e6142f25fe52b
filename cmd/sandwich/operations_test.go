package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"
)

// tracedSpan is a span as a collector receives it.
type tracedSpan struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string `json:"name"`
	Start      string `json:"startTimeUnixNano"`
	End        string `json:"endTimeUnixNano"`
	Attributes []struct {
		Key   string
		Value map[string]any
	}
}

// attr returns the value of an attribute; nil: none.
func (s *tracedSpan) attr(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

// collector receives spans.
type collector struct {
	mu    sync.Mutex
	spans []tracedSpan
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []tracedSpan } `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range body.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// TestServeTraces checks the spans of one chat request in a collector: they have the trace of the
// client, the id of the request, and the phases follow each other. It also checks that /metrics has
// what docs/ops names.
func TestServeTraces(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	s := startServe(t, "--otlp-endpoint", server.URL)
	req, err := http.NewRequest("POST", s.url+"/v1/chat/completions",
		strings.NewReader(`{"messages":[{"role":"user","content":"Hello!"}],"temperature":0,"max_tokens":8}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "chat-1")
	req.Header.Set("Traceparent", "00-"+trace+"-"+span+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	res.Body.Close()
	_, metrics, _ := s.do("GET", "/metrics", "", "")
	checkNames(t, metrics)
	s.stop()

	c.mu.Lock()
	defer c.mu.Unlock()
	of := map[string]tracedSpan{}
	for _, s := range c.spans {
		if s.TraceID == trace || s.Name == "load model" {
			of[s.Name] = s
		}
	}
	root := of["POST /v1/chat/completions"]
	if root.Parent != span || root.attr("sandwich.request.id") != "chat-1" ||
		root.attr("gen_ai.request.model") != "tales-6m-q8_0" || root.attr("gen_ai.usage.output_tokens") != "8" ||
		root.attr("sandwich.class") != "reactive" {
		t.Errorf("the request: %+v", root)
	}
	from := root.Start
	for _, name := range []string{"queue", "prefill", "decode"} {
		phase := of[name]
		if phase.Parent != root.SpanID || phase.Start < from || phase.End < phase.Start || phase.End > root.End {
			t.Errorf("%s after %s: %+v in %+v", name, from, phase, root)
		}
		from = phase.End
	}
	if _, ok := of["load model"]; !ok {
		t.Errorf("no trace of loading in %+v", c.spans)
	}
}

// checkNames checks that /metrics has every metric that the dashboard and the rules name.
func checkNames(t *testing.T, text string) {
	t.Helper()
	var exist []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		exist = append(exist, m[1])
		if m[2] == "histogram" {
			exist = append(exist, m[1]+"_bucket", m[1]+"_sum", m[1]+"_count")
		}
	}
	// This server has no certificate.
	exist = append(exist, "sandwich_tls_certificate_expiry_timestamp_seconds")
	for path, min := range map[string]int{"../../docs/ops/dashboard.json": 15, "../../docs/ops/alerts.yaml": 8} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var parsed any
		if err := yaml.Unmarshal(data, &parsed); err != nil { // JSON is YAML
			t.Errorf("%s: %v", path, err)
		}
		names := regexp.MustCompile(`\b(?:sandwich|process|go)_[a-z_]+\b`).FindAllString(string(data), -1)
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) < min {
			t.Errorf("%s names %d metrics", path, len(names))
		}
		for _, name := range names {
			if !slices.Contains(exist, name) {
				t.Errorf("%s: /metrics has no %s", path, name)
			}
		}
	}
}
