package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOperationsTools checks the files of docs/ops and the names of metrics by the tools that the
// variables PROMTOOL and DASHBOARD_LINTER name (make test-ops).
func TestOperationsTools(t *testing.T) {
	run := func(name, variable, stdin string, args ...string) {
		t.Run(name, func(t *testing.T) {
			tool := os.Getenv(variable)
			if tool == "" {
				t.Skipf("%s is not set; run make test-ops with the tool installed", variable)
			}
			c := exec.Command(tool, args...)
			c.Stdin = strings.NewReader(stdin)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", tool, args, err, out)
			}
		})
	}
	run("alerts", "PROMTOOL", "", "check", "rules", "../../docs/ops/alerts.yaml")
	run("dashboard", "DASHBOARD_LINTER", "", "lint", "--strict", "../../docs/ops/dashboard.json")
	if os.Getenv("PROMTOOL") == "" {
		return
	}
	s := startServe(t)
	s.do("POST", "/v1/completions", `{"prompt":"Once","max_tokens":2}`, "")
	_, text, _ := s.do("GET", "/metrics", "", "")
	s.stop()
	run("metrics", "PROMTOOL", text, "check", "metrics")
}
