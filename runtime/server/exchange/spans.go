package exchange

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/tracing"
)

// StartTrace starts the trace of the request, below the span of its traceparent header.
func (x *Exchange) StartTrace(t *tracing.Tracer, r *http.Request) {
	if x.Spans = t.Start(r.Header.Get("Traceparent"), x.Start); x.Spans != nil {
		x.Trace = x.Spans.TraceID()
	}
}

// Phases adds the spans of a choice that has ended: queue, load of a prefix from disk, prefill and
// decode. err is the error of the choice.
func (x *Exchange) Phases(choice int, r *api.Result, err error) {
	if x.Spans == nil || r.Arrived.IsZero() {
		return
	}
	now, failure := time.Now(), failureOf(err)
	at := func(d time.Duration) time.Time { return r.Arrived.Add(d) }
	add := func(name string, from, to time.Time, failure string, attrs ...tracing.Attr) {
		x.Spans.Child(name, from, to, failure, append(attrs, tracing.Attr{Key: "sandwich.choice", Value: choice},
			tracing.Attr{Key: "sandwich.class", Value: x.Class.String()})...)
	}
	if r.LoadedTokens > 0 {
		add("load", r.LoadBegan, r.LoadBegan.Add(r.LoadTime), "",
			tracing.Attr{Key: "sandwich.loaded_tokens", Value: r.LoadedTokens})
	}
	if !r.Started {
		add("queue", r.Arrived, now, failure)
		return
	}
	add("queue", r.Arrived, at(r.Queued), "")
	prefill := []tracing.Attr{{Key: "sandwich.prompt_tokens", Value: r.PromptTokens},
		{Key: "sandwich.cached_tokens", Value: r.CachedTokens}}
	if r.Tokens == 0 {
		add("prefill", at(r.Queued), now, failure, prefill...)
		return
	}
	add("prefill", at(r.Queued), at(r.FirstToken), "", prefill...)
	add("decode", at(r.FirstToken), at(r.Total), failure, tracing.Attr{Key: "sandwich.tokens", Value: r.Tokens},
		tracing.Attr{Key: "sandwich.drafted_tokens", Value: r.DraftedTokens},
		tracing.Attr{Key: "sandwich.accepted_tokens", Value: r.AcceptedTokens})
}

// failureOf describes an error without content of the request; "" without an error.
func failureOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "failed"
}

// EndTrace ends the trace of the request. Attributes have the names of OpenTelemetry's semantic
// conventions where there are some. They contain no prompt, answer or key.
func (x *Exchange) EndTrace() {
	if x.Spans == nil {
		return
	}
	attrs := []tracing.Attr{
		{Key: "http.request.method", Value: x.Method}, {Key: "http.route", Value: x.Route},
		{Key: "http.response.status_code", Value: x.Status}, {Key: "sandwich.request.id", Value: x.ID},
		{Key: "sandwich.class", Value: x.Class.String()}, {Key: "sandwich.stream", Value: x.Stream},
	}
	if x.Model != "" {
		attrs = append(attrs, tracing.Attr{Key: "gen_ai.request.model", Value: x.Model})
	}
	if r := x.Result; r != nil {
		attrs = append(attrs, tracing.Attr{Key: "gen_ai.usage.input_tokens", Value: r.PromptTokens},
			tracing.Attr{Key: "gen_ai.usage.output_tokens", Value: r.Tokens},
			tracing.Attr{Key: "sandwich.cached_tokens", Value: r.CachedTokens},
			tracing.Attr{Key: "gen_ai.response.finish_reasons", Value: []string{string(r.Finish)}})
	}
	failure := ""
	if x.Err != nil && x.Err.Code != nil {
		attrs = append(attrs, tracing.Attr{Key: "error.type", Value: *x.Err.Code})
	}
	if x.Status >= http.StatusInternalServerError {
		failure = http.StatusText(x.Status)
		if failure == "" {
			failure = "failed"
		}
	}
	x.Spans.End(x.Method+" "+x.Route, time.Now(), failure, attrs...)
}
