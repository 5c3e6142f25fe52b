package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sum adds up a metric over its labels.
func (s *served) sum(name string) (sum float64) {
	s.t.Helper()
	_, text, _ := s.do("GET", "/metrics", "", "")
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			s.t.Error(err)
		}
		sum += v
	}
	return sum
}

// idle waits until nothing waits or runs, and expects every KV block free.
func (s *served) idle() {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if s.sum("sandwich_engine_waiting")+s.sum("sandwich_engine_running") == 0 {
			break
		}
	}
	waits, runs := s.sum("sandwich_engine_waiting"), s.sum("sandwich_engine_running")
	if all, free := s.sum("sandwich_kv_blocks"), s.sum("sandwich_kv_blocks_free"); waits+runs > 0 || all != free {
		s.t.Errorf("%g wait, %g run, %g of %g KV blocks are free", waits, runs, free, all)
	}
}

// crowdClient keeps as many connections as a crowd has clients at once.
func crowdClient(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n}}
}

// TestServeTenThousand sends ten thousand requests for one token, of both classes and with prompts
// up to the length of the context, over 200 connections. Each is answered, or refused with
// Retry-After; a client that retries after the given times is admitted.
func TestServeTenThousand(t *testing.T) {
	const clients, requests = 200, 10_000
	s := startServe(t, "--parallel", "2", "--queue", "20")
	web := crowdClient(clients)
	ask := func(i int) (code int, after time.Duration) {
		body := fmt.Sprintf(`{"prompt":%q,"max_tokens":1,"priority":%d}`, fmt.Sprint("the king ", i), i%2)
		if i%97 == 0 { // all 512 positions
			body = fmt.Sprintf(`{"prompt":[%s17],"max_tokens":1,"priority":%d}`, strings.Repeat("17,", 510), i%2)
		}
		res, err := web.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, 0
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		switch res.StatusCode {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 600 {
				t.Errorf("refused until %q", res.Header.Get("Retry-After"))
			}
			after = time.Duration(seconds) * time.Second
		default:
			t.Errorf("status %d: %s", res.StatusCode, text)
		}
		return res.StatusCode, after
	}
	var all sync.WaitGroup
	var next, served, refused, again atomic.Int64
	for range clients {
		all.Go(func() {
			last, after := 0, time.Duration(0)
			for i := int(next.Add(1)); i <= requests; i = int(next.Add(1)) {
				code, d := ask(i)
				if last, after = 0, d; code == http.StatusOK {
					served.Add(1)
				} else {
					refused.Add(1)
					last = i
				}
			}
			// Clients whose last request was refused. The tries of a minute do not count alone: the
			// server may be stopped for longer than it predicts.
			begun := time.Now()
			for tries := 0; last > 0 && (tries < 10 || time.Since(begun) < time.Minute); tries++ {
				time.Sleep(after)
				code, d := ask(last)
				if after = d; code == http.StatusOK {
					again.Add(1)
					return
				}
			}
			if last > 0 {
				t.Error("a client that came when it was told was refused ten times and for a minute")
			}
		})
	}
	all.Wait()
	if served.Load() == 0 || refused.Load() == 0 || again.Load() == 0 {
		t.Errorf("%d served, %d refused, %d let in again", served.Load(), refused.Load(), again.Load())
	}
	s.idle()
	s.stop()
}

// TestServeHangUps checks that clients of both classes that disconnect at any time, also while
// their prompts are halted or their sequences wait, leak no resources, and that the other clients
// get the answers that they get alone.
func TestServeHangUps(t *testing.T) {
	s := startServe(t, "--parallel", "3", "--mixed-cap", "1", "--queue", "100", "--op-bound", "1ms")
	web := crowdClient(32)
	ask := func(ctx context.Context, kind, priority int) string {
		body := fmt.Sprintf(`{"prompt":%q,"max_tokens":24,"temperature":0,"ignore_eos":true,"priority":%d}`,
			strings.Repeat(fmt.Sprint("the ", kind, " kings "), 10+20*kind), priority)
		req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		res, err := web.Do(req)
		if err != nil {
			return "" // it hung up
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return ""
		}
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d: %s", res.StatusCode, text)
		}
		m := regexp.MustCompile(`"text":("(?:[^"\\]|\\.)*")`).FindSubmatch(text)
		if m == nil {
			t.Errorf("no text in %s", text)
			return ""
		}
		return string(m[1])
	}
	var want [4]string
	for kind := range want {
		want[kind] = ask(t.Context(), kind, 0)
	}
	var all sync.WaitGroup
	var whole, gone atomic.Int64
	for client := range 16 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			for range 25 {
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(150))*time.Millisecond, cancel)
				}
				kind := rng.IntN(len(want))
				switch got := ask(ctx, kind, client%2); {
				case got == want[kind]:
					whole.Add(1)
				case got == "" && ctx.Err() != nil:
					gone.Add(1)
				default:
					t.Errorf("%q, alone %q", got, want[kind])
				}
				cancel()
			}
		})
	}
	all.Wait()
	if whole.Load() == 0 || gone.Load() == 0 {
		t.Errorf("%d stayed, %d hung up", whole.Load(), gone.Load())
	}
	for _, what := range []string{"prefill_stops", "evictions"} {
		if s.sum("sandwich_engine_"+what+"_total") == 0 {
			t.Errorf("no %s: the test tests nothing", what)
		}
	}
	s.idle()
	s.stop()
}
