package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeDrainDelay checks that requests are answered after SIGTERM while /health reports the
// shutdown, and that a second signal ends that time. /metrics needs no key with --open-metrics.
func TestServeDrainDelay(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--drain-delay", "1h", "--open-metrics", "--api-key-file", keys)
	if code, text, _ := s.do("GET", "/metrics", "", ""); code != http.StatusOK {
		t.Errorf("/metrics without a key: status %d %s", code, text)
	} else {
		for _, want := range []string{"sandwich_requests_waiting 0", "sandwich_requests_running 0",
			"sandwich_kv_cache_usage_ratio 0", "sandwich_kv_block_tokens 64", `sandwich_info{model="`, `,plan="`,
			`,host="`, `,topology="`, `,version="`} {
			if !strings.Contains(text, want) {
				t.Errorf("/metrics has no %s", want)
			}
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for code := 0; code != http.StatusServiceUnavailable; time.Sleep(10 * time.Millisecond) {
		code, _, _ = s.do("GET", "/health", "", "")
	}
	const body = `{"prompt":"the king","max_tokens":1}`
	if code, text, _ := s.do("POST", "/v1/completions", body, "secret"); code != http.StatusOK {
		t.Errorf("a request during the drain delay: status %d %s", code, text)
	}
	s.stop()
	if !strings.Contains(s.stderr.String(), "a second signal ends this delay") {
		t.Errorf("stderr does not say how to end the delay: %s", &s.stderr)
	}
}
