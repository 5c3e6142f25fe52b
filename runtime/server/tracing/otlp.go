package tracing

import (
	"encoding/json"
	"strconv"
	"time"
)

// The types of this file are the JSON encoding of opentelemetry.proto.collector.trace.v1. 64-bit
// integers are strings there.

type otlpRequest struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   otlpResource `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type otlpResource struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type scopeSpans struct {
	Scope otlpScope  `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Parent     string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Status     *otlpStatus     `json:"status,omitempty"`
}

type otlpStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// statusError is the code of a failed span.
const statusError = 2

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string    `json:"stringValue,omitempty"`
	Int    *string    `json:"intValue,omitempty"`
	Double *float64   `json:"doubleValue,omitempty"`
	Bool   *bool      `json:"boolValue,omitempty"`
	Array  *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

// encode returns the body of a request with all spans of batches.
func encode(resource []Attr, version string, batches []batch) ([]byte, error) {
	scope := scopeSpans{Scope: otlpScope{Name: "sandwich", Version: version}}
	for _, b := range batches {
		for i := range b.spans {
			scope.Spans = append(scope.Spans, encodeSpan(b.trace, &b.spans[i]))
		}
	}
	return json.Marshal(otlpRequest{[]resourceSpans{{Resource: otlpResource{encodeAttrs(resource)},
		ScopeSpans: []scopeSpans{scope}}}})
}

func encodeSpan(trace string, s *span) otlpSpan {
	out := otlpSpan{TraceID: trace, SpanID: s.id, Parent: s.parent, Name: s.name, Kind: s.kind, Start: nanos(s.start),
		End: nanos(s.end), Attributes: encodeAttrs(s.attrs)}
	if s.failed {
		out.Status = &otlpStatus{statusError, s.message}
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func encodeAttrs(attrs []Attr) (out []otlpAttribute) {
	for _, a := range attrs {
		out = append(out, otlpAttribute{a.Key, encodeValue(a.Value)})
	}
	return out
}

func encodeValue(v any) (out otlpValue) {
	switch v := v.(type) {
	case string:
		out.String = &v
	case int:
		text := strconv.Itoa(v)
		out.Int = &text
	case int64:
		text := strconv.FormatInt(v, 10)
		out.Int = &text
	case float64:
		out.Double = &v
	case bool:
		out.Bool = &v
	case []string:
		out.Array = &otlpArray{Values: []otlpValue{}}
		for _, s := range v {
			out.Array.Values = append(out.Array.Values, otlpValue{String: &s})
		}
	}
	return out
}
