package serve

import (
	"net"
	"strings"
	"testing"

	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/runtime/server/generation"
)

// TestAnnounce checks that the address that is bound is printed, and one that can be tried.
func TestAnnounce(t *testing.T) {
	for addr, want := range map[string][2]string{
		"127.0.0.1:8080": {"on http://127.0.0.1:8080; try:", "curl http://127.0.0.1:8080/"},
		"0.0.0.0:80":     {"on http://0.0.0.0:80, all interfaces of this machine; try:", "curl http://127.0.0.1:80/"},
		"[::]:80":        {"on http://[::]:80, all interfaces of this machine; try:", "curl http://127.0.0.1:80/"},
		"192.0.2.7:80":   {"on http://192.0.2.7:80; try:", "curl http://192.0.2.7:80/"},
	} {
		bound, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		announce(&out, []listen.URL{{Addr: bound}}, "m", &generation.ModelInfo{}, false)
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %s\nhas no %q", addr, &out, w)
			}
		}
		if got, want := listen.IsLocal(bound), addr == "127.0.0.1:8080"; got != want {
			t.Errorf("%s is a loopback address: %v", addr, got)
		}
	}
}
