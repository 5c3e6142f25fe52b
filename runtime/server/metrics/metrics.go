// Package metrics counts HTTP requests and generations and writes them in the Prometheus text
// format.
package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/api"
)

// Metric is one sample for /metrics.
type Metric struct {
	Name    string // snake case with the prefix sandwich_ and the unit
	Help    string
	Counter bool        // never decreases; else a gauge
	Labels  [][2]string // pairs of name and value
	Value   float64
}

// Counters are the metrics of the HTTP server. Methods may be called concurrently.
type Counters struct {
	mu       sync.Mutex
	requests map[requestLabel]uint64
	series   map[Series]*durations

	InFlight atomic.Int64
	prompt   total
	cached   total
	tokens   total
}

// Series are the labels of a histogram.
type Series struct {
	Model string // one of the served models
	Class api.Class
}

// durations are the histograms of a series.
type durations struct {
	request histogram // whole generations
	ttft    histogram // time to the first token
	gap     histogram // time between tokens of a request
	queue   histogram // time to the first forward
}

// total is a counter that never decreases.
type total struct{ n atomic.Int64 }

// add adds n; it ignores negative values.
func (t *total) add(n int) {
	if n > 0 {
		t.n.Add(int64(n))
	}
}

// value returns the sum.
func (t *total) value() float64 { return float64(t.n.Load()) }

// requestLabel has the labels of the request counter.
type requestLabel struct {
	path   string
	status int
}

// histogram has fixed buckets from 1 ms to 10 min; sum is in seconds.
type histogram struct {
	counts [len(bounds) + 1]uint64
	sum    float64
}

// bounds are the upper bounds of the buckets in seconds.
var bounds = [...]float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 60, 120, 300, 600}

// observe counts a duration. Negative durations count as 0, so that the sum never decreases.
func (h *histogram) observe(d time.Duration) {
	s, i := max(0, d).Seconds(), 0
	for i < len(bounds) && s > bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += s
}

// Request counts a response.
func (c *Counters) Request(path string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = make(map[requestLabel]uint64)
	}
	c.requests[requestLabel{path, status}]++
}

// of returns the histograms of a series. All classes of a model have some. The caller holds the
// lock.
func (c *Counters) of(s Series) *durations {
	if d := c.series[s]; d != nil {
		return d
	}
	if c.series == nil {
		c.series = make(map[Series]*durations)
	}
	for _, class := range []api.Class{api.Reactive, api.Proactive} {
		if of := (Series{s.Model, class}); c.series[of] == nil {
			c.series[of] = new(durations)
		}
	}
	return c.series[s]
}

// Finished counts a successful generation that took the given time.
func (c *Counters) Finished(r *api.Result, s Series, took time.Duration) {
	c.prompt.add(r.PromptTokens)
	c.cached.add(r.CachedTokens)
	c.tokens.add(r.Tokens)
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.of(s)
	d.request.observe(took)
	d.queue.observe(r.Queued)
}

// Text returns all metrics in the Prometheus text format. bodyBytes is the memory of request
// bodies. Series of a model for which shown returns false are left out; if shown is nil, all are
// written.
func (c *Counters) Text(bodyBytes int64, more []Metric, shown func(model string) bool) []byte {
	own, histograms := c.collect(bodyBytes)
	samples := append(own, more...)
	if shown != nil {
		hidden := func(labels [][2]string) bool {
			return slices.ContainsFunc(labels, func(l [2]string) bool { return l[0] == "model" && !shown(l[1]) })
		}
		samples = slices.DeleteFunc(samples, func(m Metric) bool { return hidden(m.Labels) })
		for i := range histograms {
			histograms[i].of = slices.DeleteFunc(histograms[i].of, func(l labeled) bool { return hidden(l.labels) })
		}
	}
	return exposition(samples, histograms)
}

// FirstToken observes the time from a request to its first token.
func (c *Counters) FirstToken(s Series, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(s).ttft.observe(d)
}

// BetweenTokens observes the time between two tokens of a request.
func (c *Counters) BetweenTokens(s Series, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(s).gap.observe(d)
}

// collect returns the metrics of the server, of the Go runtime and of the process.
func (c *Counters) collect(bodyBytes int64) (out []Metric, hists []namedHistogram) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l, n := range c.requests {
		out = append(out, Metric{"sandwich_http_requests_total", "HTTP requests answered; 499 are clients that " +
			"hung up.", true,
			[][2]string{{"path", l.path}, {"code", strconv.Itoa(l.status)}}, float64(n)})
	}
	add := func(name, help string, counter bool, v float64) {
		out = append(out, Metric{Name: name, Help: help, Counter: counter, Value: v})
	}
	add("sandwich_http_requests_in_flight", "Generation requests being answered.", false, float64(c.InFlight.Load()))
	add("sandwich_http_body_bytes", "Memory held by request bodies.", false, float64(bodyBytes))
	add("sandwich_prompt_tokens_total", "Prompt tokens of finished requests.", true, c.prompt.value())
	add("sandwich_cached_prompt_tokens_total", "Prompt tokens that were reused, not computed.", true, c.cached.value())
	add("sandwich_completion_tokens_total", "Tokens generated for finished requests.", true, c.tokens.value())

	out = append(append(out, goMetrics()...), processMetrics()...)
	return out, c.histograms()
}

// histograms returns copies of the histograms of all series, ordered by model and class. The caller
// holds the lock.
func (c *Counters) histograms() []namedHistogram {
	list := []namedHistogram{
		{name: "sandwich_request_duration_seconds", help: "Time of a whole generation."},
		{name: "sandwich_time_to_first_token_seconds", help: "Time from the request to its first token."},
		{name: "sandwich_time_between_tokens_seconds", help: "Time between two tokens of a request."},
		{name: "sandwich_queue_duration_seconds", help: "Time from the request to its first forward."},
	}
	keys := slices.SortedFunc(maps.Keys(c.series), func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Class, b.Class))
	})
	for _, s := range keys {
		d, labels := c.series[s], [][2]string{{"class", s.Class.String()}, {"model", s.Model}}
		for i, h := range []histogram{d.request, d.ttft, d.gap, d.queue} {
			list[i].of = append(list[i].of, labeled{labels, h})
		}
	}
	return list
}
