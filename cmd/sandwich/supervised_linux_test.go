package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writeCertificate writes a certificate of 127.0.0.1 that signs itself, and its key.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64, expires time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: expires.Add(-time.Hour),
		NotAfter: expires, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// supervisor collects the messages that a service sends to systemd.
func supervisor(t *testing.T, path string) *syncBuffer {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	messages := &syncBuffer{}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			_, _ = messages.Write(append(b[:n:n], '\n')) // does not fail
		}
	}()
	return messages
}

// TestServeSupervised runs a server as systemd does: with a TCP socket that systemd opened, served
// over TLS, a unix socket that a killed process left behind, notifications and a watchdog.
func TestServeSupervised(t *testing.T) {
	dir := t.TempDir()
	path, cert, key := filepath.Join(dir, "api"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	writeCertificate(t, cert, key, 1, time.Now().Add(-time.Minute))
	killed, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	killed.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	messages := supervisor(t, filepath.Join(dir, "notify"))
	said := func(text string) {
		t.Helper()
		waitFor(t, text, func() bool { return strings.Contains(messages.String(), text) })
	}

	profiles := freeAddress(t)
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec sandwich "$@"`, "sh", "serve", "--listen", "unix:"+path+",mode=0660",
		"--listen", "fd:api", "--tls-cert", cert, "--tls-key", key, "--pprof", profiles)
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "LISTEN_FDS=1", "LISTEN_FDNAMES=api",
		"NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=400000")
	s := launchServer(t, cmd)
	said("STATUS=loading: ")
	said("READY=1\nSTATUS=serving tales-6m-q8_0 on unix:" + path)
	said("WATCHDOG=1")
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("the unix socket: %v, %v", info, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	local := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	checkStatus(t, local, "http://any.name/health")
	checkStatus(t, http.DefaultClient, "http://"+profiles+"/debug/pprof/heap")

	serial := func() (n int64) {
		check := func(der [][]byte, _ [][]*x509.Certificate) error {
			leaf, err := x509.ParseCertificate(der[0])
			if err == nil {
				n = leaf.SerialNumber.Int64()
			}
			return err
		}
		secure := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: check}}}
		checkStatus(t, secure, s.url+"/health")
		return n
	}
	if got := serial(); got != 1 || !strings.Contains(s.stderr.String(), "expired on") {
		t.Errorf("certificate %d is in use: %s", got, &s.stderr)
	}
	writeCertificate(t, cert, key, 2, time.Now().Add(time.Hour))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	said("RELOADING=1\nMONOTONIC_USEC=")
	waitFor(t, "a report of SIGHUP", func() bool {
		return strings.Contains(s.stderr.String(), "SIGHUP: loaded the certificate")
	})
	if got := serial(); got != 2 {
		t.Errorf("certificate %d is in use after SIGHUP", got)
	}
	s.stop()
	said("STOPPING=1")
	if _, err := os.Lstat(path); err == nil {
		t.Error("the unix socket is left behind")
	}
}

// checkStatus checks that a request has status 200.
func checkStatus(t *testing.T, c *http.Client, url string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return
	}
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d", url, res.StatusCode)
	}
}
