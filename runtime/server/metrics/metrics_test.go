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
	text := string(c.Text(0, nil, nil))
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

// TestSeriesOfModels checks that series of models that a client may not see are left out, also of
// sums over models, and that series without a model stay.
func TestSeriesOfModels(t *testing.T) {
	var c Counters
	for _, model := range []string{"a", "b"} {
		c.Finished(&api.Result{}, Series{model, api.Reactive}, time.Second)
	}
	state := func(model string) Metric {
		return Metric{Name: "sandwich_model_state", Labels: [][2]string{{"state", "loaded"}, {"model", model}}}
	}
	const named = `model="`
	for _, test := range []struct {
		name  string
		shown func(model string) bool
		has   []string
		not   []string
	}{
		{"all", nil, []string{named + "a", named + "b", "sandwich_request_seconds_count 2\n"}, nil},
		{"one", func(model string) bool { return model == "a" },
			[]string{named + "a", "sandwich_request_seconds_count 1\n"}, []string{named + "b"}},
		{"none", func(string) bool { return false }, []string{"sandwich_http_body_bytes 7\n", "sandwich_info"},
			[]string{named}},
	} {
		text := string(c.Text(7, []Metric{state("a"), state("b"), {Name: "sandwich_info"}}, test.shown))
		for _, want := range test.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", test.name, want, text)
			}
		}
		for _, absent := range test.not {
			if strings.Contains(text, absent) {
				t.Errorf("%s: %q in\n%s", test.name, absent, text)
			}
		}
	}
}
