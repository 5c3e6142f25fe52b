package metrics

import (
	"math"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
)

// TestCountersNeverFall passes negative values, as a faulty Generator might return them.
func TestCountersNeverFall(t *testing.T) {
	var c Counters
	r := api.Result{PromptTokens: 9, CachedTokens: 3, Tokens: 2, Queued: time.Second}
	c.Finished(&r, Series{"m", api.Reactive}, time.Second)
	bad := api.Result{PromptTokens: -9, CachedTokens: -3, Tokens: math.MinInt, Queued: math.MinInt64}
	c.Finished(&bad, Series{"m", api.Reactive}, -time.Hour)
	text := string(c.Text(0, nil))
	for _, want := range []string{
		"sandwich_prompt_tokens_total 9\n", "sandwich_cached_prompt_tokens_total 3\n",
		"sandwich_completion_tokens_total 2\n",
		"sandwich_request_seconds_sum 1\n", "sandwich_request_seconds_count 2\n",
		"sandwich_queue_seconds_sum{class=\"reactive\"} 1\n", "sandwich_queue_seconds_count{class=\"reactive\"} 2\n",
		"sandwich_request_duration_seconds_count{class=\"reactive\",model=\"m\"} 2\n",
		"sandwich_request_duration_seconds_count{class=\"proactive\",model=\"m\"} 0\n",
		"# HELP sandwich_request_seconds Deprecated: use sandwich_request_duration_seconds.\n",
		"sandwich_queue_seconds_bucket{class=\"reactive\",le=\"0.001\"} 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
