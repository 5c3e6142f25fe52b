package haproxy

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 0, "number of interleaved rounds of TestSessions, for each way to choose a replica")

// The sessions of a round.
const (
	users         = 10
	conversations = 3 // of a user, interleaved
	turns         = 6
	answerTokens  = 12
)

// tally sums the answers of rounds.
type tally struct {
	mu             sync.Mutex
	requests       int
	prompt, cached int
	first          time.Duration
	spent          time.Duration
}

func (s *tally) add(a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.prompt, s.cached, s.first = s.prompt+a.prompt, s.cached+a.cached, s.first+a.first
}

func (s *tally) hits() float64 { return float64(s.cached) / float64(max(1, s.prompt)) }

// TestSessions prints the share of prompt tokens found in the cache and the mean time to the first
// token, by hash and by round robin. Each round starts with empty caches.
func TestSessions(t *testing.T) {
	if *rounds == 0 {
		t.Skip("it measures: run make test-haproxy")
	}
	names := []string{"hash", "round robin"}
	sums := map[string]*tally{}
	for _, name := range names {
		sums[name] = &tally{}
	}
	for round := range *rounds {
		for _, name := range names {
			all := startReplicas(t)
			p := startProxy(t, name, all)
			start := time.Now()
			var each sync.WaitGroup
			for u := range users {
				each.Go(func() { p.converse(fmt.Sprintf("%d-%d", round, u), sums[name]) })
			}
			each.Wait()
			sums[name].spent += time.Since(start)
			stop(all)
		}
	}
	t.Logf("%-12s %9s %10s %16s %11s", "balance", "requests", "hit ratio", "mean TTFT (ms)", "requests/s")
	for _, name := range names {
		s := sums[name]
		t.Logf("%-12s %9d %10.2f %16.0f %11.1f", name, s.requests, s.hits(),
			float64(s.first.Milliseconds())/float64(max(1, s.requests)), float64(s.requests)/s.spent.Seconds())
	}
	if hash, robin := sums["hash"], sums["round robin"]; hash.hits() < robin.hits() {
		t.Errorf("hash finds %.2f of the prompts in caches, less than round robin, %.2f", hash.hits(), robin.hits())
	}
}

// converse runs the conversations of a user, one request at a time.
func (p *proxy) converse(user string, sum *tally) {
	var history [conversations][]message
	for turn := range turns {
		for c := range history {
			text := fmt.Sprintf("Then what did number %d of %s do?", turn, user)
			if turn == 0 {
				text = opening(user, c)
			}
			history[c] = append(history[c], message{"user", text})
			a, err := p.ask(fmt.Sprintf("user %s conversation %d", user, c), history[c], answerTokens, true)
			if err != nil {
				p.t.Errorf("%s, user %s: %v", p.name, user, err)
				return
			}
			history[c] = append(history[c], message{"assistant", a.text})
			sum.add(a)
		}
	}
}

// opening returns the first message of a conversation, of about 200 tokens.
func opening(user string, conversation int) string {
	text := fmt.Sprintf("This is story %d of %s. ", conversation, user)
	animals := []string{"fox", "hen", "dog", "cat", "bear", "bird", "frog"}
	for i := range 16 {
		text += fmt.Sprintf("The %s went to the %s with the king. ", animals[(i*i+conversation)%len(animals)],
			[]string{"river", "forest", "house"}[(i+len(user))%3])
	}
	return text
}
