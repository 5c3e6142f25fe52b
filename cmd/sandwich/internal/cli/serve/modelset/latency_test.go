package modelset

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/generation"
)

var (
	latencyServed = flag.String("latency-served", "", "GGUF file that TestLatency generates text with")
	latencyLoaded = flag.String("latency-loaded", "", "GGUF file that TestLatency loads meanwhile")
	latencyRounds = flag.Int("latency-rounds", 3, "rounds of the arms of TestLatency")
	latencyTokens = flag.Int("latency-tokens", 400, "tokens of an answer of TestLatency")
)

// TestLatency prints the 99th percentile of the time per token of a model while another one is
// loaded again and again, next to two arms without loads, in interleaved rounds, and the time to
// the first token of a model that is not loaded. It checks nothing: `make models-check` runs it on
// a quiet machine.
func TestLatency(t *testing.T) {
	if *latencyServed == "" || *latencyLoaded == "" {
		t.Skip("no -latency-served and -latency-loaded")
	}
	o := options(t, catalogOf(t, t.TempDir(), fmt.Sprintf("models:\n  - {name: served, model: %q, load: pinned}\n"+
		"  - {name: loaded, model: %q}\n", *latencyServed, *latencyLoaded)))
	o.Session.Threads = 0
	s := open(t, o)
	answer := func(model string) (first time.Duration, between []time.Duration) {
		m, _ := s.Router().Route(model, generation.Key{})
		defer m.Close()
		last := time.Now()
		_, err := m.Generate(t.Context(), api.Request{Text: "Once upon a time", MaxTokens: *latencyTokens,
			IgnoreEOS: true}, func(api.Token) error {
			now := time.Now()
			if first == 0 {
				first = now.Sub(last)
			} else {
				between = append(between, now.Sub(last))
			}
			last = now
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return first, between
	}
	answer("served")
	var arms [3][]time.Duration // without loads, again, with loads
	loads := 0
	for range *latencyRounds {
		for arm := range arms {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for arm == 2 && ctx.Err() == nil {
					e := s.cache.Add(s.models[1].source, false)
					if _, release, err := e.Acquire(ctx, nil); err == nil {
						loads++
						release()
					}
					e.Retire()
				}
			}()
			_, between := answer("served")
			stop()
			<-ended
			arms[arm] = append(arms[arm], between...)
		}
	}
	p99 := func(list []time.Duration) time.Duration {
		slices.Sort(list)
		return list[len(list)*99/100]
	}
	base := p99(arms[0])
	t.Logf("P99 of the time per token: %v; again %v (%.2f times); during %d loads %v (%.2f times)", base, p99(arms[1]),
		p99(arms[1]).Seconds()/base.Seconds(), loads, p99(arms[2]), p99(arms[2]).Seconds()/base.Seconds())
	var firsts []string
	for range *latencyRounds {
		first, _ := answer("loaded")
		firsts = append(firsts, first.Round(time.Millisecond).String())
		s.models[1].entry.Retire() // the reload below adds it again, not loaded
		s.models[1].file = ""
		if _, err := s.reload(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("time to the first token of a model that is not loaded: %s", strings.Join(firsts, ", "))
}
