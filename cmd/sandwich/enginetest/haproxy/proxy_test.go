package haproxy

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proxy is a running HAProxy.
type proxy struct {
	t      *testing.T
	name   string
	dir    string
	stderr *output
	client *http.Client
}

// variants are changes of the exported configuration.
var variants = map[string]func(config string) string{
	"hash": func(config string) string { return config },
	"round robin": func(config string) string {
		for _, line := range []string{"hash-type consistent sdbm avalanche", "hash-balance-factor 200"} {
			config = strings.Replace(config, "    "+line+"\n", "", 1)
		}
		return strings.Replace(config, "balance hash var(txn.session)", "balance roundrobin", 1)
	},
	"no retries": func(config string) string {
		return strings.Replace(config, "retries 3", "retries 0", 1)
	},
}

// exported returns the configuration that plan export writes for replicas.
func exported(t *testing.T, all []*replica) string {
	t.Helper()
	var addresses []string
	for _, r := range all {
		addresses = append(addresses, r.address)
	}
	plan := filepath.Join("..", "..", "..", "..", "plans", "testdata", "v2", "tuned.plan")
	out, err := exec.Command(binary(t), "plan", "export", plan, "--to", "haproxy", "--replicas",
		strings.Join(addresses, ",")).Output()
	if err != nil {
		t.Fatalf("plan export: %v", err)
	}
	return string(out)
}

// startProxy starts HAProxy with a variant of the exported configuration. It listens on a socket of
// the file system.
func startProxy(t *testing.T, name string, all []*replica) *proxy {
	t.Helper()
	tool, err := exec.LookPath("haproxy")
	if err != nil {
		t.Fatal(err)
	}
	config := exported(t, all)
	changed := variants[name](config)
	if name != "hash" && changed == config {
		t.Fatalf("%s: the exported configuration lacks what the test changes:\n%s", name, config)
	}
	dir, err := os.MkdirTemp("", "haproxy") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, c := range [][2]string{{"global\n", "global\n    stats socket " + dir + "/stats level admin\n"},
		{"bind :8080\n", "bind unix@" + dir + "/http\n"}} {
		if !strings.Contains(changed, c[0]) {
			t.Fatalf("the exported configuration lacks %q:\n%s", c[0], changed)
		}
		changed = strings.Replace(changed, c[0], c[1], 1)
	}
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-c", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("HAProxy refuses the exported configuration: %v\n%s\n%s", err, out, changed)
	}
	p := &proxy{t: t, name: name, dir: dir, stderr: &output{}}
	cmd := exec.Command(tool, "-db", "-f", path)
	cmd.Stderr, cmd.Stdout = p.stderr, p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "http"))
		}}}
	t.Cleanup(p.client.CloseIdleConnections)
	for i := range all {
		p.await(i, "UP")
	}
	return p
}

// await returns when HAProxy has seen a replica in a state, UP or DOWN.
func (p *proxy) await(i int, state string) {
	p.t.Helper()
	p.until(fmt.Sprintf("replica %d is %s", i+1, state), func() bool {
		return strings.HasPrefix(p.column(i, "status"), state)
	})
}

// awaitIdle returns when no request of this proxy runs on a replica.
func (p *proxy) awaitIdle(i int) {
	p.t.Helper()
	p.until(fmt.Sprintf("replica %d is idle", i+1), func() bool { return p.column(i, "scur") == "0" })
}

// until polls for an event; five minutes mean that it never comes.
func (p *proxy) until(event string, happened func() bool) {
	p.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s: it never happened that %s: %s", p.name, event, p.stderr)
		}
	}
}

// column returns a column of the statistics of a replica, "" if HAProxy does not answer yet.
func (p *proxy) column(i int, name string) string {
	conn, err := net.Dial("unix", filepath.Join(p.dir, "stats"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	fmt.Fprintln(conn, "show stat")
	text, err := io.ReadAll(conn)
	if err != nil {
		return ""
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "# "))).ReadAll()
	if err != nil || len(rows) == 0 {
		return ""
	}
	for _, row := range rows[1:] {
		if row[0] != "replicas" || row[1] != fmt.Sprintf("replica%d", i+1) {
			continue
		}
		for k, title := range rows[0] {
			if title == name {
				return row[k]
			}
		}
	}
	return ""
}
