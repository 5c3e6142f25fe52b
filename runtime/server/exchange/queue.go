package exchange

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sandwich/runtime/api"
)

// Response headers with the state of the queue when the request arrived.
const (
	QueuePlaceHeader = "X-Sandwich-Queue-Place" // number of requests that run earlier
	QueueWaitHeader  = "X-Sandwich-Queue-Wait"  // estimated seconds until the request runs
	FirstTokenHeader = "X-Sandwich-First-Token" // estimated seconds until the first token
	CacheHeader      = "X-Sandwich-Cache"       // cached tokens of the prompt and the first token that differs
)

// setQueue sets the response headers with the state of the queue.
func setQueue(h http.Header, q api.Queue) {
	if q.Prompt > 0 {
		h.Set(CacheHeader, cacheValue(q))
	}
	h.Set(QueuePlaceHeader, strconv.Itoa(q.Ahead))
	seconds := func(name string, d time.Duration) { h.Set(name, strconv.FormatFloat(d.Seconds(), 'f', 3, 64)) }
	if q.Wait > 0 || q.Ahead == 0 {
		seconds(QueueWaitHeader, q.Wait)
	}
	if q.First > 0 {
		seconds(FirstTokenHeader, q.First)
	}
}

// cacheValue returns the number of cached tokens, the length of the prompt, the number of further
// tokens that are loaded from disk, if any, and, if known, the index of the first token that
// differs from the most similar recent prompt.
func cacheValue(q api.Queue) string {
	value := fmt.Sprintf("hit=%d; prompt=%d", q.Cached, q.Prompt)
	if q.Stored > 0 {
		value += fmt.Sprintf("; disk=%d", q.Stored)
	}
	if q.Diverged >= 0 {
		value += fmt.Sprintf("; diverged=%d", q.Diverged)
	}
	return value
}
