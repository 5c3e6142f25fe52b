package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testCertificate returns a certificate of 127.0.0.1 that signs itself, and the pool that trusts
// it.
func testCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// startSecure serves g with TLS and returns its address and a client that trusts it.
func startSecure(t *testing.T, f *fake, o Options) (addr string, client *http.Client) {
	t.Helper()
	o.HeaderTimeout, o.ErrorLog = time.Hour, discardLog
	certificate, pool := testCertificate(t)
	ln := listenLocal(t, "tcp", "127.0.0.1:0")
	startOn(t, Secure(ln, &tls.Config{Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"http/1.1"}}), New(f, o))
	transport := &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}}}
	t.Cleanup(transport.CloseIdleConnections)
	return ln.Addr().String(), &http.Client{Transport: transport}
}

func listenLocal(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// TestHalfHandshakes checks that 1,000 connections whose TLS handshake does not progress keep no
// client out, whether they sent nothing, a part of a handshake, or a complete first message.
func TestHalfHandshakes(t *testing.T) {
	addr, client := startSecure(t, &fake{}, Options{MaxConns: 64, ClientConns: 64, HeaderTimeout: time.Hour})
	hello := clientHello(t)
	var open []net.Conn
	for i := range 1000 {
		c := dial(t, "http://"+addr)
		if open = append(open, c); len(open) > 100 { // the server has displaced the first ones
			open[0].Close()
			open = open[1:]
		}
		switch i % 4 {
		case 1:
			_, _ = c.Write(hello[:3]) // fails if the server closed the connection
		case 2:
			_, _ = c.Write(hello[:len(hello)/2])
		case 3:
			_, _ = c.Write(hello)
		}
		if i%100 == 99 {
			res, err := client.Get("https://" + addr + "/health")
			if err != nil {
				t.Fatalf("after %d half handshakes: %v", i+1, err)
			}
			if res.Body.Close(); res.StatusCode != http.StatusOK {
				t.Fatalf("after %d half handshakes: status %d", i+1, res.StatusCode)
			}
		}
	}
}

// clientHello returns the first message of a TLS client.
func clientHello(t *testing.T) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		_ = tls.Client(ours, &tls.Config{InsecureSkipVerify: true}).Handshake() // fails when the pipe is closed
		ours.Close()
	}()
	b := make([]byte, 4096)
	n, err := theirs.Read(b)
	if err != nil || n < 100 {
		t.Fatalf("a first message of %d bytes: %v", n, err)
	}
	return b[:n]
}

// TestSecureAnswers checks an answer and a refused body over TLS, the protocol, and that a client
// without TLS is told so.
func TestSecureAnswers(t *testing.T) {
	addr, client := startSecure(t, &fake{words: []string{"x"}}, Options{MaxBody: 1 << 10})
	for _, c := range []struct {
		body string
		want int
	}{{chatOnce, http.StatusOK}, {`{"prompt":"` + strings.Repeat("x", 8<<10) + `"}`, http.StatusRequestEntityTooLarge}} {
		res, err := client.Post("https://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatalf("a body of %d bytes: %v", len(c.body), err)
		}
		if res.Body.Close(); res.StatusCode != c.want || res.TLS.NegotiatedProtocol != "http/1.1" {
			t.Errorf("a body of %d bytes: status %d, want %d; protocol %q", len(c.body), res.StatusCode, c.want,
				res.TLS.NegotiatedProtocol)
		}
	}
	plain := dial(t, "http://"+addr)
	if _, err := io.WriteString(plain, getHealth); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(plain) // the server resets the connection
	if !bytes.HasPrefix(text, []byte("HTTP/1.0 400")) || !bytes.Contains(text, []byte("requires TLS")) {
		t.Errorf("without TLS: %q", text)
	}
}

// TestSecureRefusal checks that a connection above the bounds gets its refusal over TLS. The time
// for a refusal is short, so that a slow machine may need several tries.
func TestSecureRefusal(t *testing.T) {
	f := &fake{words: []string{"x"}, first: make(chan struct{}), started: make(chan struct{}, 1)}
	addr, client := startSecure(t, f, Options{MaxConns: 1})
	answered := make(chan error, 1)
	go func() {
		res, err := client.Post("https://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(chatOnce))
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	<-f.started
	eventually(t, "a refusal over TLS", func() bool {
		res, err := client.Get("https://" + addr + "/health")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "1"
	})
	close(f.first)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestSeveralListeners serves on TCP and on a unix socket, where every Host is allowed.
func TestSeveralListeners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	tcp, local := listenLocal(t, "tcp", "127.0.0.1:0"), listenLocal(t, "unix", path)
	untilEnd(t, New(&fake{}, Options{Hosts: []string{"localhost"}}).Serve, tcp, local)
	for _, c := range []struct {
		network, addr string
		want          int
	}{{"tcp", tcp.Addr().String(), http.StatusMisdirectedRequest}, {"unix", path, http.StatusOK}} {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, c.network, c.addr)
		}
		transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
		res, err := (&http.Client{Transport: transport}).Get("http://elsewhere/health")
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.network, res.StatusCode, c.want)
		}
	}
}
