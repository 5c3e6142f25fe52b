package tracing

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// environment returns a getenv with variables.
func environment(v map[string]string) func(string) string {
	return func(name string) string { return v[name] }
}

// TestSpans sends a request with a parent to a collector and checks what it receives.
func TestSpans(t *testing.T) {
	got := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		got <- r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Team") + " " + string(text)
	}))
	defer collector.Close()
	o, ok, err := FromEnvironment(collector.URL, environment(map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "X-Team=a%20b", "OTEL_SERVICE_NAME": "llm"}))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	tracer := New(o)
	tracer.client.Timeout = 0
	began := time.Unix(10, 0)
	r := tracer.Start(parent, began)
	r.Child("queue", began, began.Add(time.Second), "", Attr{"n", 3}, Attr{"x", 0.5})
	r.Child("backwards", began, began.Add(-time.Second), "")
	r.Child("never", time.Time{}, began, "")
	r.End("POST /x", began.Add(2*time.Second), "it failed", Attr{"id", "req-1"}, Attr{"reasons", []string{"stop"}})
	r.End("again", began, "")
	tracer.Close(t.Context())
	message := <-got
	for _, want := range []string{
		"POST /v1/traces a b ",
		`{"key":"service.name","value":{"stringValue":"llm"}}`,
		`"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"parentSpanId":"b7ad6b7169203331"`, `"name":"POST /x"`, `"kind":2`,
		`"startTimeUnixNano":"10000000000"`, `"endTimeUnixNano":"12000000000"`, `"status":{"code":2,"message":"it failed"}`,
		`{"key":"id","value":{"stringValue":"req-1"}}`, `{"arrayValue":{"values":[{"stringValue":"stop"}]}}`,
		`"name":"queue"`, `"intValue":"3"`, `"doubleValue":0.5`, `"parentSpanId":"` + r.self.id + `"`,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("no %s in %s", want, message)
		}
	}
	for _, name := range []string{"backwards", "never", "again"} {
		if strings.Contains(message, name) {
			t.Errorf("%s in %s", name, message)
		}
	}
	if tracer.sent.Load() != 2 || tracer.dropped.Load() != 0 {
		t.Errorf("%d sent, %d dropped", tracer.sent.Load(), tracer.dropped.Load())
	}
}

// TestSlowCollector checks that requests end although the collector does not answer, and that each
// span is counted as sent or dropped.
func TestSlowCollector(t *testing.T) {
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
	}))
	defer collector.Close()
	defer close(release)
	o, _, err := FromEnvironment(collector.URL, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	tracer := New(o)
	const n = 3 * (queueLength + maxSent)
	for range n {
		r := tracer.Start("", time.Now())
		r.End("x", time.Now(), "")
	}
	if dropped := tracer.dropped.Load(); dropped < n-queueLength-2*maxSent || dropped > n {
		t.Errorf("%d of %d spans were dropped", dropped, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Close(ctx) // does not wait
}

// TestRefusingCollector checks that spans that a collector refuses are counted, and reported once.
func TestRefusingCollector(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	o, _, err := FromEnvironment(collector.URL+"/", environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	tracer := New(o)
	tracer.client.Timeout = 0
	tracer.Start("", time.Now()).End("x", time.Now(), "")
	tracer.Close(t.Context())
	if tracer.dropped.Load() != 1 || len(notes) != 1 || !strings.Contains(notes[0], "404") {
		t.Errorf("%d dropped, %q", tracer.dropped.Load(), notes)
	}
	if text := tracer.Metrics()[1]; text.Name != "sandwich_trace_spans_dropped_total" || text.Value != 1 {
		t.Errorf("%+v", text)
	}
}

// TestUntraced checks that nothing is recorded without a Tracer or outside the sample.
func TestUntraced(t *testing.T) {
	var none *Tracer
	r := none.Start(parent, time.Now())
	r.Child("x", time.Now(), time.Now(), "")
	r.End("x", time.Now(), "")
	none.Close(t.Context())
	if r.TraceID() != "" || none.Metrics() != nil {
		t.Error("a nil Tracer records")
	}
	unsampled := strings.TrimSuffix(parent, "01") + "00"
	for _, c := range []struct {
		name, arg, parent string
		want              bool
	}{
		{"", "", "", true}, {"", "", parent, true}, {"", "", unsampled, false},
		{"always_on", "", unsampled, true}, {"always_off", "", parent, false},
		{"parentbased_always_off", "", "", false}, {"parentbased_always_off", "", parent, true},
		{"traceidratio", "0", parent, false}, {"traceidratio", "1", parent, true}, {"traceidratio", "", parent, true},
		{"parentbased_traceidratio", "0.5", unsampled, false},
		// 8448eb211c80319c is above the middle of all ids.
		{"traceidratio", "0.51", parent, false}, {"traceidratio", "0.52", parent, true},
	} {
		s, err := samplerOf(c.name, c.arg)
		if err != nil {
			t.Fatal(err)
		}
		trace, _, sampled, ok := parseParent(c.parent)
		if !ok {
			trace = randomHex(16)
		}
		if got := s.records(trace, ok, sampled); got != c.want {
			t.Errorf("%+v: recorded %v", c, got)
		}
	}
}

// TestFromEnvironment checks endpoints and the messages for values that are not valid.
func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		flag, variable, value string
		want                  string // endpoint, or a part of the error; "": no tracing
	}{
		{"", "", "", ""},
		{"", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/", "http://c:4318/v1/traces"},
		{"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/x", "https://c/x"},
		{"http://f:1", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318", "http://f:1/v1/traces"},
		{"c:4318", "", "", "is not valid; give one such as"},
		{"http://f", "OTEL_EXPORTER_OTLP_HEADERS", "secret", "OTEL_EXPORTER_OTLP_HEADERS is not valid"},
		{"http://f", "OTEL_RESOURCE_ATTRIBUTES", "a=%zz", "OTEL_RESOURCE_ATTRIBUTES is not valid"},
		{"http://f", "OTEL_TRACES_SAMPLER", "jaeger", "is not supported"},
		{"", "OTEL_SDK_DISABLED", "true", ""},
	} {
		o, ok, err := FromEnvironment(c.flag, environment(map[string]string{c.variable: c.value}))
		switch {
		case err != nil:
			if c.want == "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v", c, err)
			}
		case ok != (c.want != "") || ok && o.Endpoint != c.want:
			t.Errorf("%+v: %v %q", c, ok, o.Endpoint)
		}
	}
	for _, arg := range []string{"-1", "2", "x", "NaN"} {
		if _, err := samplerOf("traceidratio", arg); err == nil {
			t.Errorf("the ratio %s is accepted", arg)
		}
	}
}
