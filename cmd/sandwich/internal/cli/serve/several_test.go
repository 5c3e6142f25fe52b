package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/certs"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/cli/serve/modelset"
	"sandwich/cmd/sandwich/internal/listen"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/server"
	"sandwich/runtime/session"
)

// openSet opens the models of a catalog.
func openSet(t *testing.T, path string) *modelset.Set {
	t.Helper()
	var f modelflags.Flags
	var v modelflags.Service
	c := &cobra.Command{}
	f.Add(c)
	f.Wants = modelflags.ForBoth
	v.AddService(c.Flags())
	v.Parallel = 1
	set, err := modelset.Open(modelset.Options{Path: path, Session: f, Sizes: v.Sizes, Notice: func(string) {},
		Prefixes: func(string) *disk.Store { return nil }, Accept: func(*session.Session) error { return nil },
		ReadKeys: readKeys, Stage: func(string, float64) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return set
}

// TestReloadModels checks that SIGHUP reads the models and their keys again, and that a file that
// is not valid changes nothing.
func TestReloadModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("models: [{name: a, model: \"\", context: 64}]")
	set := openSet(t, path)
	d := &listeners{server: server.New(nil, server.Options{}), level: new(slog.LevelVar), sockets: &listen.Listeners{},
		reread: func() (reloaded, error) { return reloaded{}, nil }}
	if _, err := d.reload(); err == nil {
		t.Error("there is something to reload before the models are read")
	}
	d.serveModels(set)
	list := func(key string) string {
		r := httptest.NewRequest("GET", "/v1/models", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		d.server.ServeHTTP(w, r)
		return w.Body.String()
	}
	expect := func(key, has string, names ...string) {
		t.Helper()
		text := list(key)
		if !strings.Contains(text, has) {
			t.Errorf("key %q: %s, want %s", key, text, has)
		}
		for _, name := range []string{"a", "b"} {
			want := strings.Contains(strings.Join(names, " "), name)
			if got := strings.Contains(text, `"id":"`+name+`"`); got != want {
				t.Errorf("key %q: model %s is listed: %v", key, name, got)
			}
		}
	}
	expect("", "unloaded", "a")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "keys"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const two = "models: [{name: a, model: \"\", context: 64}, {name: b, model: \"\", context: 64, keys: keys}]"
	write(two)
	if text, err := d.reload(); err != nil || !strings.Contains(text, "2 models") {
		t.Error(text, err)
	}
	expect("", "invalid_api_key")
	expect("secret", "unloaded", "a", "b")
	for _, text := range []string{"models: []", strings.Replace(two, "keys: keys", "keys: none", 1)} {
		write(text)
		if _, err := d.reload(); err == nil {
			t.Errorf("%s is accepted", text)
		}
		expect("secret", "unloaded", "a", "b")
	}
}

// TestFailedReloadChangesNothing checks that a reload in which the certificate and the keys are
// valid and the models are not keeps all of them, and that the next one takes all.
func TestFailedReloadChangesNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	writePair := func(serial int64) {
		t.Helper()
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	}
	writePair(1)
	pair, err := certs.Load(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	path := write("models.yaml", "models: [{name: a, model: \"\", context: 64}]")
	set := openSet(t, path)
	keyFile, verbose := write("keys", "first\n"), false
	d := &listeners{server: server.New(nil, server.Options{}), level: new(slog.LevelVar), keyFile: keyFile,
		sockets: &listen.Listeners{Pair: pair},
		reread:  func() (reloaded, error) { return reloaded{keyFile: keyFile, verbose: verbose}, nil }}
	d.serveModels(set)
	if _, err := d.reload(); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		used, err := pair.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(used.Leaf.SerialNumber, d.keys, d.level.Level(), set.Name() == "1 model of "+path)
	}
	writePair(2)
	write("keys", "second\n")
	verbose = true
	write("models.yaml", "models: [{name: a, model: none.gguf}]")
	if text, err := d.reload(); err == nil || state() != "1 [first] INFO true" {
		t.Errorf("a failed reload: %s, %v, %s", text, err, state())
	}
	write("models.yaml", "models: [{name: a, model: \"\", context: 64}, {name: b, model: \"\", context: 64}]")
	if text, err := d.reload(); err != nil || state() != "2 [second] DEBUG false" {
		t.Errorf("a reload: %s, %v, %s", text, err, state())
	}
}

// TestModelsExcludes checks the errors for flags that --models excludes.
func TestModelsExcludes(t *testing.T) {
	for args, want := range map[string]string{
		"--model x.gguf": "--model cannot be used with --models",
		"--plan x.plan":  "--plan cannot be used with --models",
		"--dry-run":      "--dry-run checks one model",
	} {
		c := NewServe()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(strings.Fields(args), "--models", "m.yaml"))
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
