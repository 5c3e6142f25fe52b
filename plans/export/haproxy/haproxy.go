// Package haproxy writes configurations of HAProxy 2.6 and later.
package haproxy

import (
	"time"

	"sandwich/plans/export/replica"
	"sandwich/plans/export/sheet"
)

// Config describes the servers behind HAProxy.
type Config struct {
	Replicas []replica.Replica
	// DrainDelay and Grace are --drain-delay and --grace of the servers.
	DrainDelay, Grace time.Duration
	Capacity          int // requests that a server runs or queues
}

// CheckInterval and Fall determine how long HAProxy takes to notice that /health reports a
// shutdown.
const (
	CheckInterval = 500 * time.Millisecond
	Fall          = 2
)

// sessionHeaders lists the headers by which clients name a conversation, the most specific first.
var sessionHeaders = []string{
	"x-session-id",
	"x-claude-code-session-id",
	"x-qwen-code-session-id",
	"x-opencode-session",
	"session-id", // codex
	"session_id", // older versions of codex
	"x-session-affinity",
	"conversation_id",
}

// sessionFields lists the fields of request bodies that name a conversation or its user.
var sessionFields = []string{"prompt_cache_key", "metadata.user_id", "user"}

// Write adds the configuration to s.
func Write(s *sheet.Sheet, c Config) {
	s.Note("HAProxy 2.6 or later. Start each replica with --drain-delay %s --grace %s: after SIGTERM", c.DrainDelay,
		c.Grace)
	s.Note("it accepts requests for %s, longer than HAProxy takes to notice (%d checks, one every %s).", c.DrainDelay,
		Fall, CheckInterval)
	s.Line(global, CheckInterval.Milliseconds(), Fall, c.Capacity)
	s.Line("frontend sandwich\n    bind :8080\n    option http-buffer-request\n")
	writeSession(s)
	s.Line("    default_backend replicas\n")
	s.Line(backend)
	for i, r := range c.Replicas {
		s.Line("    server replica%d %s", i+1, r)
	}
}

// writeSession adds the rules that find the conversation of a request.
func writeSession(s *sheet.Sheet) {
	unless := "{ var(txn.session) -m found }"
	s.Line("    # The conversation of a request: a header, a field of the body, or the first message of the user.")
	for i, h := range sessionHeaders {
		if i == 0 {
			s.Line("    http-request set-var(txn.session) req.hdr(%s)", h)
			continue
		}
		s.Line("    http-request set-var(txn.session) req.hdr(%s) unless %s", h, unless)
	}
	for _, f := range sessionFields {
		s.Line("    http-request set-var(txn.session) req.body,json_query('$.%s') unless %s", f, unless)
	}
	s.Line("    http-request set-var(txn.role) req.body,json_query('$.messages[0].role')")
	s.Line("    acl instructions var(txn.role) -m str system developer")
	for i, condition := range []string{"!instructions", "instructions"} {
		for _, text := range []string{"content", "content[0].text"} {
			s.Line("    http-request set-var(txn.session) req.body,json_query('$.messages[%d].%s') if %s !%s", i, text,
				condition, unless)
		}
	}
	s.Line("")
}

const global = `global
    # Longer bodies are sent on, but not searched for a conversation and not sent again.
    tune.bufsize 131072

defaults
    mode http
    timeout connect 5s
    timeout http-request 60s
    timeout http-keep-alive 60s
    timeout queue 10m
    # A busy replica may answer a check late; one that stops answers at once.
    timeout check 10s
    # A long prompt sends nothing until its first token.
    timeout client 1h
    timeout server 1h
    http-reuse safe
    # Cancel the work of clients that disconnect.
    option abortonclose
    # A generation has no side effects, and a status 503 comes before any of it: another replica may do it.
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response 503
    option httpchk GET /health
    http-check expect status 200
    default-server check inter %dms fall %d rise 1 weight 16 maxconn %d pool-purge-delay 30s
`

const backend = `backend replicas
    # A conversation returns to the replica that has its prefix, unless that has twice the average load.
    # Requests without a conversation go round.
    balance hash var(txn.session)
    hash-type consistent sdbm avalanche
    hash-balance-factor 200`
