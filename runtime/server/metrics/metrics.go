// Package metrics counts HTTP requests and generations and writes them in the Prometheus text
// format.
package metrics

import (
	"runtime/metrics"
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
	latency  histogram    // of a whole generation
	ttft     [2]histogram // time to the first token, by class
	gap      [2]histogram // time between tokens of a request, by class
	queue    [2]histogram // time to the first forward, by class

	InFlight atomic.Int64
	prompt   total
	cached   total
	tokens   total
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

// observe counts a duration in h.
func (c *Counters) observe(h *histogram, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.observe(d)
}

// Finished counts a successful generation that took the given time.
func (c *Counters) Finished(r *api.Result, class api.Class, took time.Duration) {
	c.prompt.add(r.PromptTokens)
	c.cached.add(r.CachedTokens)
	c.tokens.add(r.Tokens)
	c.observe(&c.latency, took)
	c.observe(&c.queue[class], r.Queued)
}

// Text returns all metrics in the Prometheus text format. bodyBytes is the memory of request
// bodies.
func (c *Counters) Text(bodyBytes int64, more []Metric) []byte {
	own, histograms := c.collect(bodyBytes)
	return exposition(append(own, more...), histograms)
}

// FirstToken observes the time from a request to its first token.
func (c *Counters) FirstToken(class api.Class, d time.Duration) { c.observe(&c.ttft[class], d) }

// BetweenTokens observes the time between two tokens of a request.
func (c *Counters) BetweenTokens(class api.Class, d time.Duration) { c.observe(&c.gap[class], d) }

// collect returns the server's metrics and those of the Go runtime.
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

	samples := []metrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	value := func(i int) float64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return float64(samples[i].Value.Uint64())
	}
	add("go_goroutines", "Goroutines that exist.", false, value(0))
	add("go_memory_heap_objects_bytes", "Bytes of live and not yet swept objects on the Go heap.", false, value(1))
	add("go_gc_cycles_total", "Completed garbage collections.", true, value(2))

	return out, []namedHistogram{
		{"sandwich_request_seconds", "Time of a whole generation.", []histogram{c.latency}},
		{"sandwich_time_to_first_token_seconds", "Time from the request to its first token.", c.ttft[:]},
		{"sandwich_time_between_tokens_seconds", "Time between two tokens of a request.", c.gap[:]},
		{"sandwich_queue_seconds", "Time from the request to its first forward.", c.queue[:]},
	}
}
