package registrytest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"golang.org/x/crypto/bcrypt"
)

// startRegistry serves an empty registry on a free loopback address; with a password only the user
// "user" is let in.
func startRegistry(t *testing.T, password string) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host = l.Addr().String()
	l.Close()
	c := &configuration.Configuration{Storage: configuration.Storage{"inmemory": nil}}
	c.HTTP.Addr = host
	c.HTTP.DrainTimeout = time.Second
	c.Log.Level = "panic"
	c.Log.AccessLog.Disabled = true
	if password != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "htpasswd")
		if err := os.WriteFile(path, fmt.Appendf(nil, "user:%s\n", hash), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "plans", "path": path}}
	}
	r, err := registry.NewRegistry(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.ListenAndServe() }()
	for range 100 {
		if conn, err := net.Dial("tcp", host); err == nil {
			conn.Close()
			return host
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the registry does not listen")
	return ""
}

// program is sandwich in a folder of its own.
type program struct {
	bin, dir string
	env      []string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "sandwich"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("bin/sandwich is missing: run make build (%v)", err)
	}
	dir := t.TempDir()
	return &program{bin, dir, append(os.Environ(), "HOME="+dir, "DOCKER_CONFIG="+dir)}
}

// tune writes a plan of this host to p.plan.
func (p *program) tune(t *testing.T) {
	t.Helper()
	if out, code := p.run(t, "tune", "--budget", "1s", "--seq-max", "8", "--batch-max", "1", "-o",
		"p.plan"); code != 0 {
		t.Fatal(out)
	}
}

// run returns what a verb printed, both ways, and its exit code.
func (p *program) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.bin, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// TestPushAndPull checks pushes and pulls by tag and by digest, that the digest equals that of a
// layout, and that a tag can be moved.
func TestPushAndPull(t *testing.T) {
	p, host := newProgram(t), startRegistry(t, "")
	p.tune(t)
	place := host + "/plans/llama:1"
	pinned, code := p.run(t, "plan", "push", "p.plan", place)
	if code != 0 || !strings.HasPrefix(pinned, host+"/plans/llama@sha256:") {
		t.Fatalf("%d: %s", code, pinned)
	}
	if again, _ := p.run(t, "plan", "push", "p.plan", place); again != pinned {
		t.Errorf("pushed again: %s, %s", pinned, again)
	}
	layout, _ := p.run(t, "plan", "push", "p.plan", "oci:shelf:1")
	if _, a, _ := strings.Cut(layout, "@"); !strings.HasSuffix(pinned, a) {
		t.Errorf("%s in a layout, %s in the registry", layout, pinned)
	}
	for name, from := range map[string]string{"tag": place, "digest": pinned} {
		if out, code := p.run(t, "plan", "pull", from, "-o", name+".plan"); code != 0 || out != pinned {
			t.Errorf("%s: %d: %s", name, code, out)
		}
		for _, file := range []string{"MANIFEST.yaml", "plan.yaml", "host.yaml", "evidence.yaml"} {
			a, errA := os.ReadFile(filepath.Join(p.dir, "p.plan", file))
			b, errB := os.ReadFile(filepath.Join(p.dir, name+".plan", file))
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s of %s changed on the way (%v, %v)", file, name, errA, errB)
			}
		}
	}
	if out, code := p.run(t, "plan", "pull", host+"/plans/llama:2"); code != 1 || !strings.Contains(out,
		"has no such repository or tag") {
		t.Errorf("a tag that is not there: %d: %s", code, out)
	}
}

// TestLogin checks that nothing is accepted without the password, and that the error says how to
// log in.
func TestLogin(t *testing.T) {
	p, host := newProgram(t), startRegistry(t, "secret")
	p.tune(t)
	place := host + "/plans/llama:1"
	if out, code := p.run(t, "plan", "push", "p.plan", place); code != 1 || !strings.Contains(out, "docker login") {
		t.Errorf("%d: %s", code, out)
	}
	config := fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpzZWNyZXQ="}}}`, host) // user:secret
	if err := os.WriteFile(filepath.Join(p.dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	pinned, code := p.run(t, "plan", "push", "p.plan", place)
	if out, again := p.run(t, "plan", "pull", place, "-o", "q.plan"); code != 0 || again != 0 || out != pinned {
		t.Errorf("%d: %s; %d: %s", code, pinned, again, out)
	}
}
