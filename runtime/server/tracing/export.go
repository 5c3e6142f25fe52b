package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/server/metrics"
)

// batch is the spans of one request.
type batch struct {
	trace string
	spans []span
}

const (
	queueLength  = 1024            // requests that wait to be sent
	maxSent      = 256             // requests per message
	sendInterval = 2 * time.Second // at most between the end of a request and its message
	sendTimeout  = 10 * time.Second
	maxTries     = 4 // of one message
	firstBackoff = time.Second
)

// Tracer sends spans to a collector. A nil *Tracer records nothing. Its methods may be called
// concurrently.
type Tracer struct {
	options Options
	sampler sampler
	queue   chan batch
	client  *http.Client
	ended   chan struct{}
	closed  chan struct{} // closed by Close
	once    sync.Once

	sent, dropped atomic.Int64 // spans
	failing       bool         // the last message failed; used by run only
}

// New starts a Tracer.
func New(o Options) *Tracer {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute}
	t := &Tracer{options: o, sampler: o.sampler, queue: make(chan batch, queueLength), ended: make(chan struct{}),
		closed: make(chan struct{}), client: &http.Client{Transport: transport, Timeout: sendTimeout}}
	go t.run()
	return t
}

// put queues spans, or drops them if the queue is full.
func (t *Tracer) put(b batch) {
	select {
	case t.queue <- b:
	default:
		t.dropped.Add(int64(len(b.spans)))
	}
}

// Close sends the spans that wait, for as long as ctx allows. Spans of later requests are dropped.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	t.once.Do(func() { close(t.closed) })
	select {
	case <-t.ended:
	case <-ctx.Done():
	}
	t.client.CloseIdleConnections()
}

// Metrics returns the counters of spans.
func (t *Tracer) Metrics() []metrics.Metric {
	if t == nil {
		return nil
	}
	return []metrics.Metric{
		{Name: "sandwich_trace_spans_sent_total", Help: "Spans that the OpenTelemetry collector accepted.",
			Counter: true, Value: float64(t.sent.Load())},
		{Name: "sandwich_trace_spans_dropped_total", Help: "Spans that were dropped, because the OpenTelemetry " +
			"collector is slow, unreachable or refused them.", Counter: true, Value: float64(t.dropped.Load())},
	}
}

// run sends batches until Close, and then those that wait.
func (t *Tracer) run() {
	defer close(t.ended)
	for {
		select {
		case first := <-t.queue:
			t.send(t.collect(first))
		case <-t.closed:
			for {
				select {
				case first := <-t.queue:
					t.send(t.drain([]batch{first}))
				default:
					return
				}
			}
		}
	}
}

// collect waits for further batches of a message, up to sendInterval.
func (t *Tracer) collect(first batch) []batch {
	list := []batch{first}
	late := time.NewTimer(sendInterval)
	defer late.Stop()
	for len(list) < maxSent {
		select {
		case b := <-t.queue:
			list = append(list, b)
		case <-late.C:
			return list
		case <-t.closed:
			return t.drain(list)
		}
	}
	return list
}

// drain adds the batches that wait.
func (t *Tracer) drain(list []batch) []batch {
	for len(list) < maxSent {
		select {
		case b := <-t.queue:
			list = append(list, b)
		default:
			return list
		}
	}
	return list
}

// send sends one message, several times if the collector may accept it later.
func (t *Tracer) send(list []batch) {
	n := 0
	for _, b := range list {
		n += len(b.spans)
	}
	body, err := encode(t.options.Resource, t.options.Version, list)
	for try, wait := 1, firstBackoff; err == nil; try, wait = try+1, 2*wait {
		var again bool
		if again, err = t.post(body); err == nil {
			t.sent.Add(int64(n))
			t.note(nil)
			return
		}
		if !again || try == maxTries || !t.pause(wait) {
			break
		}
		err = nil
	}
	t.dropped.Add(int64(n))
	t.note(err)
}

// pause waits before another try; it returns false after Close.
func (t *Tracer) pause(d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-t.closed:
		return false
	}
}

// post sends a message once. again reports whether the collector may accept it later.
func (t *Tracer) post(body []byte) (again bool, err error) {
	req, err := http.NewRequest(http.MethodPost, t.options.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, value := range t.options.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := t.client.Do(req)
	if err != nil {
		return true, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 1<<16) // so that the connection is used again
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if res.StatusCode/100 != 2 {
		return again, fmt.Errorf("%s: status %s", t.options.Endpoint, res.Status)
	}
	return false, nil
}

// note reports the first of several failures, and the end of them.
func (t *Tracer) note(err error) {
	failing := err != nil
	if failing != t.failing && t.options.Note != nil {
		if failing {
			t.options.Note("traces: " + err.Error() + "; spans are dropped until the collector accepts them")
		} else {
			t.options.Note("traces: the collector accepts spans again")
		}
	}
	t.failing = failing
}
