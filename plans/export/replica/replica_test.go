package replica_test

import (
	"strings"
	"testing"

	"sandwich/plans/export/replica"
)

func TestParse(t *testing.T) {
	got, err := replica.Parse([]string{"10.0.0.1:8080", " node-2.example:81", "[fd00::1]:8080"})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range got {
		text = append(text, r.String())
	}
	if strings.Join(text, " ") != "10.0.0.1:8080 node-2.example:81 [fd00::1]:8080" {
		t.Errorf("%v", text)
	}
	if !got[0].IsIPv4() || got[1].IsIPv4() || got[2].IsIPv4() {
		t.Errorf("IPv4 addresses are not told from others: %v", got)
	}
	if got, err := replica.Parse(nil); got != nil || err != nil {
		t.Errorf("no addresses: %v %v", got, err)
	}
}

func TestParseRejects(t *testing.T) {
	for _, bad := range []string{"", "10.0.0.1", ":8080", "10.0.0.1:0", "10.0.0.1:65536", "a b:80", "-x:80", "x\n:80",
		"10.0.0.1:http", "fd00::1:8080", "[fe80::1%eth0]:80", strings.Repeat("a", 300) + ":80"} {
		if got, err := replica.Parse([]string{bad}); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("%q: %v %v", bad, got, err)
		}
	}
	if _, err := replica.Parse([]string{"a:1", "a:1"}); err == nil ||
		!strings.Contains(err.Error(), "a:1 is given twice") {
		t.Errorf("a replica given twice: %v", err)
	}
	if _, err := replica.Parse(make([]string, 1001)); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("1001 replicas: %v", err)
	}
}
