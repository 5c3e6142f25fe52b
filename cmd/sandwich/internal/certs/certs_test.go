package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// files are the paths of a certificate and its key.
type files struct{ cert, key string }

// write replaces the files by a new pair with a serial number that expires at a time.
func (f files) write(t *testing.T, serial int64, expires time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: expires.Add(-time.Hour), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, f.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	replace(t, f.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// replace replaces a file by a new one, so that it has another identity.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func newFiles(t *testing.T) files {
	dir := t.TempDir()
	return files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

// TestFollow changes the files of a pair and checks which certificate is in use and what is
// reported, once per change.
func TestFollow(t *testing.T) {
	f, now := newFiles(t), time.Now()
	f.write(t, 1, now.Add(time.Hour))
	var notes []string
	p, err := Load(f.cert, f.key, func(s string) { notes = append(notes, s) })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, serial int64, want ...string) {
		t.Helper()
		notes = nil
		p.check(now)
		p.check(now)
		used, err := p.Config().GetCertificate(nil)
		if err != nil || used.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%s: certificate %v is in use, want %d; %v", what, used.Leaf.SerialNumber, serial, err)
		}
		if len(notes) != len(want) {
			t.Fatalf("%s: reported %q, want %q", what, notes, want)
		}
		for i, text := range want {
			if !strings.Contains(notes[i], text) {
				t.Errorf("%s: reported %q, want %q", what, notes[i], text)
			}
		}
	}
	expect("unchanged", 1)
	f.write(t, 2, now.Add(time.Hour))
	expect("replaced", 2, "loaded the certificate")
	replace(t, f.key, []byte("no key"))
	expect("a bad key", 2, "the previous certificate stays in use")
	if err := p.reload(); err == nil {
		t.Error("reload accepted a bad key")
	}
	other := newFiles(t)
	other.write(t, 3, now.Add(time.Hour))
	key, err := os.ReadFile(other.key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, f.key, key)
	expect("the key of another certificate", 2, "private key does not match")
	if err := os.Remove(f.cert); err != nil {
		t.Fatal(err)
	}
	expect("no file", 2, "the previous certificate stays in use")
	f.write(t, 4, now.Add(-time.Minute))
	expect("expired", 4, "expired on", "loaded the certificate")
	now = now.Add(warningInterval - time.Second)
	expect("within a day", 4)
	now = now.Add(time.Minute)
	expect("a day later", 4, "expired on")
	f.write(t, 5, now.Add(2*time.Hour))
	expect("not valid yet", 5, "is valid from", "loaded the certificate")
}

// TestPrepare checks that files which were read are used after the commit only, and that files
// which are not valid leave nothing to commit.
func TestPrepare(t *testing.T) {
	f, now := newFiles(t), time.Now()
	f.write(t, 1, now.Add(time.Hour))
	p, err := Load(f.cert, f.key, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 { return p.current.Load().Leaf.SerialNumber.Int64() }
	f.write(t, 2, now.Add(time.Hour))
	commit, err := p.Prepare()
	if err != nil || serial() != 1 {
		t.Errorf("prepared: certificate %d, %v", serial(), err)
	}
	if commit(); serial() != 2 {
		t.Errorf("committed: certificate %d", serial())
	}
	p.check(now)
	replace(t, f.key, []byte("no key"))
	if _, err := p.Prepare(); err == nil || serial() != 2 {
		t.Errorf("not valid: certificate %d, %v", serial(), err)
	}
}

// TestLoadRefusals checks the messages for files that cannot be used at the start.
func TestLoadRefusals(t *testing.T) {
	f := newFiles(t)
	f.write(t, 1, time.Now().Add(time.Hour))
	for _, c := range []struct {
		cert, key, want string
	}{
		{f.cert + "x", f.key, "--tls-cert: "},
		{f.cert, f.key + "x", "--tls-key: "},
		{f.key, f.key, "--tls-cert "},
		{f.cert, f.cert, "--tls-key "},
		{filepath.Dir(f.cert), f.key, "--tls-cert: "},
	} {
		if _, err := Load(c.cert, c.key, func(string) {}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v, want %q", c.cert, c.key, err, c.want)
		}
	}
}

// TestVersions checks that clients below TLS 1.2 are refused and that only HTTP/1.1 is offered.
func TestVersions(t *testing.T) {
	f := newFiles(t)
	f.write(t, 1, time.Now().Add(time.Hour))
	p, err := Load(f.cert, f.key, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() {
			c := tls.Server(theirs, p.Config())
			err := c.Handshake()
			theirs.Close()
			served <- err
		}()
		c := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version,
			NextProtos: []string{"h2", "http/1.1"}})
		err := c.Handshake()
		ours.Close()
		<-served
		if got := c.ConnectionState().NegotiatedProtocol; (err == nil) != ok || ok && got != "http/1.1" {
			t.Errorf("version %x: %v, protocol %q", version, err, got)
		}
	}
}
