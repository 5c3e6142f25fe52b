package registrytest

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestPlansByHost pushes 20 distinct plans at once, builds the index, which must list all of them,
// and starts a server by the index: with the key that signed the newest plan, with another key, and
// with a registry that has gone.
func TestPlansByHost(t *testing.T) {
	const jobs = 20
	p, host := newProgram(t), startRegistry(t, "")
	p.env = append(p.env, "XDG_DATA_HOME="+filepath.Join(p.dir, "data"))
	p.tune(t)
	place := host + "/fleet/plans"
	for name, text := range map[string]string{"one.pem": privateKey, "one.pub": publicKey, "two.pub": otherKey} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range jobs { // the signature makes equal plans distinct
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		name := fmt.Sprint("job-", i)
		if err := os.WriteFile(filepath.Join(p.dir, name+".pem"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"pack", "p.plan", "-o", name + ".sandwich"},
			{"sign", name + ".sandwich", "--key", name + ".pem"}} {
			if out, code := p.run(t, append([]string{"plan"}, args...)...); code != 0 {
				t.Fatal(out)
			}
		}
	}
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() {
			name := fmt.Sprint("job-", i)
			if out, code := p.run(t, "plan", "push", name+".sandwich", place+":"+name); code != 0 {
				t.Errorf("%s: %s", name, out)
			}
		})
	}
	wg.Wait()
	if out, code := p.run(t, "plan", "index", place); code != 0 || !strings.Contains(out, "listed 20 plans") {
		t.Fatalf("%d: %s", code, out)
	}
	if out, code := p.run(t, "fleet", "report", place); code != 0 ||
		!strings.Contains(out, "20 plans for 1 kind of host") {
		t.Errorf("%d: %s", code, out)
	}
	if out, code := p.run(t, "serve", "--plans", place, "--dry-run", "--require-key", "two.pub"); code != 2 ||
		!strings.Contains(out, "not signed by that key") {
		t.Errorf("another key: %d: %s", code, out)
	}

	// A job that runs twice, then a server with and without the registry.
	if out, code := p.run(t, "plan", "sign", "p.plan", "--key", "one.pem"); code != 0 {
		t.Fatal(out)
	}
	place = host + "/signed/plans"
	if out, code := p.run(t, "plan", "push", "p.plan", place); code != 0 {
		t.Fatal(out)
	}
	if out, code := p.run(t, "tune", "--budget", "1s", "--plans", place, "--push"); code != 0 ||
		!strings.Contains(out, "nothing is tuned") {
		t.Errorf("a job that runs again: %d: %s", code, out)
	}
	if out, code := p.run(t, "plan", "index", place); code != 0 || !strings.Contains(out, "listed 1 plan") {
		t.Fatalf("%d: %s", code, out)
	}
	serve := []string{"serve", "--plans", place, "--dry-run", "--require-key", "one.pub"}
	if out, code := p.run(t, serve...); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	// A time limit that no answer meets simulates a registry that does not respond.
	gone := append(serve, "--plans-timeout", "1ns")
	if out, code := p.run(t, gone...); code != 0 || !strings.Contains(out, "from the cache folder") {
		t.Errorf("without the registry: %d: %s", code, out)
	}
}
