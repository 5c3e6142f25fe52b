// Package tracing records spans of requests and sends them to an OpenTelemetry collector in the
// JSON encoding of OTLP over HTTP. Recording never waits for the collector: spans beyond a bound
// are dropped and counted.
package tracing

import (
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"strings"
	"sync"
	"time"
)

// Attr is an attribute of a span. The value is a string, int, int64, float64, bool or []string.
type Attr struct {
	Key   string
	Value any
}

// span is one span of a trace.
type span struct {
	id, parent string // hexadecimal; no parent: ""
	name       string
	kind       int
	start, end time.Time
	attrs      []Attr
	failed     bool
	message    string // of a failure
}

// Kinds of spans in OTLP.
const (
	kindInternal = 1
	kindServer   = 2
)

// Request is the trace of one request: a span of its own and children. Its methods may be called
// concurrently. They do nothing on nil, which is a request that is not recorded.
type Request struct {
	tracer *Tracer
	trace  string
	self   span

	mu       sync.Mutex
	children []span
	ended    bool
}

// maxChildren bounds the spans of one request; a request may have many choices.
const maxChildren = 256

// Start begins the trace of a request. parent is the value of its traceparent header; "" or an
// invalid value: none. It returns nil if the request is not sampled, or if t is nil.
func (t *Tracer) Start(parent string, start time.Time) *Request {
	if t == nil {
		return nil
	}
	trace, span, sampled, ok := parseParent(parent)
	if !ok {
		trace, span = randomHex(16), ""
	}
	if !t.sampler.records(trace, ok, sampled) {
		return nil
	}
	r := &Request{tracer: t, trace: trace}
	r.self.id, r.self.parent, r.self.start = randomHex(8), span, start
	return r
}

// TraceID returns the id of the trace in hexadecimal; "" on nil.
func (r *Request) TraceID() string {
	if r == nil {
		return ""
	}
	return r.trace
}

// Child adds a span that has ended. A failure that is not "" marks it as failed. Spans without a
// start, and those that end before it, are not added.
func (r *Request) Child(name string, start, end time.Time, failure string, attrs ...Attr) {
	if r == nil || start.IsZero() || end.Before(start) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || len(r.children) == maxChildren {
		return
	}
	r.children = append(r.children, span{id: randomHex(8), parent: r.self.id, name: name, kind: kindInternal,
		start: start, end: end, attrs: attrs, failed: failure != "", message: failure})
}

// End ends the request and passes its spans to the collector. Later calls change nothing.
func (r *Request) End(name string, end time.Time, failure string, attrs ...Attr) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	r.self.name, r.self.kind, r.self.end, r.self.attrs = name, kindServer, end, attrs
	r.self.failed, r.self.message = failure != "", failure
	r.tracer.put(batch{r.trace, append([]span{r.self}, r.children...)})
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// parseParent reads a traceparent header (W3C Trace Context, level 1).
func parseParent(text string) (trace, span string, sampled, ok bool) {
	const versionLength, traceLength, spanLength, flagsLength = 2, 32, 16, 2
	fields := strings.Split(text, "-")
	if len(fields) < 4 || len(fields[0]) != versionLength || len(fields[1]) != traceLength ||
		len(fields[2]) != spanLength || len(fields[3]) != flagsLength || fields[0] == "ff" ||
		fields[0] == "00" && len(fields) > 4 {
		return "", "", false, false
	}
	for _, f := range fields[:4] {
		if strings.Trim(f, "0123456789abcdef") != "" {
			return "", "", false, false
		}
	}
	if strings.Trim(fields[1], "0") == "" || strings.Trim(fields[2], "0") == "" {
		return "", "", false, false
	}
	flags, err := hex.DecodeString(fields[3])
	return fields[1], fields[2], err == nil && flags[0]&1 == 1, true
}

// TraceID returns the trace id of a traceparent header, or "" if the header is not valid.
func TraceID(parent string) string {
	trace, _, _, _ := parseParent(parent)
	return trace
}

// sampler decides which requests are recorded, as OTEL_TRACES_SAMPLER says.
type sampler struct {
	parent bool    // a parent decides
	ratio  float64 // of the traces, where no parent decides
}

// records reports whether a trace is recorded. The decision depends on the trace id only, so that
// several services record the same traces.
func (s sampler) records(trace string, hasParent, sampled bool) bool {
	if s.parent && hasParent {
		return sampled
	}
	id, ok := new(big.Int).SetString(trace[16:], 16)
	if !ok || s.ratio >= 1 {
		return s.ratio > 0
	}
	limit, _ := new(big.Float).SetFloat64(s.ratio * (1 << 63)).Int(nil)
	return id.Rsh(id, 1).Cmp(limit) < 0
}
