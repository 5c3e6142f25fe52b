package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"
)

// TestClasses checks that body, header or key determine the class of a request, and that
// contradictions are refused.
func TestClasses(t *testing.T) {
	f := &fake{words: []string{"a"}}
	s := New(f, Options{APIKeys: []string{"now", "later class=proactive", "also\tclass=reactive",
		" last \t class=7\t"}})
	for _, c := range []struct {
		fields, header, key string
		want                string // class and priority, or a part of the error
	}{
		{``, "", "now", "reactive 0"}, {``, "", "later", "proactive 1"}, {``, "", "also", "reactive 0"},
		{``, "", "last", "proactive 7"}, {`"priority":3,`, "", "last", "proactive 3"}, {``, "-2", "last", "reactive -2"},
		{`"priority":0,`, "", "later", "reactive 0"}, {`"priority":-7,`, "", "now", "reactive -7"},
		{`"priority":1,`, "", "now", "proactive 1"}, {`"priority":"proactive",`, "", "last", "proactive 1"},
		{`"priority":null,`, "", "later", "proactive 1"}, {`"priority":2147483647,`, "", "now", "proactive 2147483647"},
		{`"priority":-2147483648,`, "", "now", "reactive -2147483648"},
		{`"service_tier":"flex",`, "", "now", "proactive 1"}, {`"service_tier":"auto",`, "", "now", "reactive 0"},
		{``, "proactive", "now", "proactive 1"}, {``, "3", "now", "proactive 3"}, {``, " reactive ", "later", "reactive 0"},
		{`"priority":5,"service_tier":"flex",`, "proactive", "now", "proactive 5"},
		{`"priority":"proactive","service_tier":"flex",`, "9", "now", "proactive 9"},
		{`"priority":5,"service_tier":"flex",`, "9", "now", "X-Sandwich-Priority"},
		{`"priority":5,`, " 5 ", "now", "proactive 5"}, {`"priority":-1,`, "0", "now", "X-Sandwich-Priority"},
		{`"priority":0,"service_tier":"flex",`, "", "now", "service_tier"},
		{`"service_tier":"flex",`, "0", "now", "X-Sandwich-Priority"},
		{`"priority":"reactive",`, "proactive", "now", "X-Sandwich-Priority"},
		{`"priority":2147483648,`, "", "now", "priority"}, {`"priority":1.5,`, "", "now", "priority"},
		{`"priority":"5",`, "", "now", "priority"}, {`"priority":"urgent",`, "", "now", "priority"},
		{`"priority":true,`, "", "now", "priority"}, {`"priority":[1],`, "", "now", "priority"},
		{`"priority":1e400,`, "", "now", "priority"}, {``, "soon", "now", "X-Sandwich-Priority"},
		{``, strings.Repeat("9", 4000), "now", "X-Sandwich-Priority"},
		{`"priority":"",`, "", "now", "priority"}, {`"priority":{},`, "", "now", "priority"}, {`"priority":0.5,`, "", "now", "priority"},
		{`"priority":-0.0,`, "", "now", "reactive 0"}, {`"priority":0.3e1,`, "", "now", "proactive 3"},
	} {
		name := fmt.Sprintf("%.40s %.20s %s", c.fields, c.header, c.key)
		r := httptest.NewRequest(http.MethodPost, "/v1/completions",
			strings.NewReader(`{`+c.fields+`"prompt":"x","max_tokens":1}`))
		r.Header.Set("Authorization", "Bearer "+c.key)
		if c.header != "" {
			r.Header.Set(request.PriorityHeader, c.header)
		}
		w := httptest.NewRecorder()
		f.last = nil
		s.ServeHTTP(w, r)
		switch {
		case f.last == nil && (w.Code != 400 || !strings.Contains(w.Body.String(), `"param":"`+c.want+`"`)):
			t.Errorf("%s: status %d, %s, want a 400 about %s", name, w.Code, w.Body, c.want)
		case f.last != nil && (w.Code != 200 || fmt.Sprint(f.last.Class, " ", f.last.Priority) != c.want):
			t.Errorf("%s: status %d, %s %d, want %s", name, w.Code, f.last.Class, f.last.Priority, c.want)
		}
	}
	text := scrape(t, s, "now")
	for _, want := range []string{
		`sandwich_time_to_first_token_seconds_count{class="proactive",model="tales-6m"} 14`,
		`sandwich_time_to_first_token_seconds_bucket{class="reactive",model="tales-6m",le="+Inf"} 9`,
		`sandwich_queue_seconds_count{class="proactive"} 14`,
		`sandwich_time_between_tokens_seconds_count{class="reactive",model="tales-6m"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

func scrape(t *testing.T, s *Server, key string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}

// standing is a Generator that reports a state of the queue.
type standing struct {
	fake
	ahead int
	wait  time.Duration
}

func (g *standing) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	r.Queued(api.Queue{Ahead: g.ahead, Wait: g.wait, First: g.wait})
	return g.fake.Generate(ctx, r, emit)
}

// TestQueueHeaders checks the queue headers of streamed and other answers.
func TestQueueHeaders(t *testing.T) {
	for _, c := range []struct {
		ahead       int
		wait        time.Duration
		place, time string
	}{{0, 0, "0", "0.000"}, {7, 0, "7", ""}, {7, 1500 * time.Millisecond, "7", "1.500"}} {
		for _, stream := range []string{"true", "false"} {
			s := New(&standing{fake{words: []string{"a"}}, c.ahead, c.wait}, Options{})
			w := post(t, s, "/v1/completions", `{"prompt":"x","stream":`+stream+`}`)
			h := w.Header()
			if w.Code != 200 || h.Get(exchange.QueuePlaceHeader) != c.place ||
				h.Get(exchange.QueueWaitHeader) != c.time {
				t.Errorf("%+v: status %d, %v", c, w.Code, h)
			}
		}
	}
}
