// Package certs issues the certificates of a cluster that lives for one test.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority issues certificates and writes them as files.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority that writes to a folder: its own certificate is ca.crt.
func New(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := template(pkix.Name{CommonName: "test"})
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.key = key
	return a, a.write("ca", der, key)
}

// Issue writes NAME.crt and NAME.key for a client and server with a user name, groups and
// addresses.
func (a *Authority) Issue(name, user string, groups []string, addresses ...net.IP) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := template(pkix.Name{CommonName: user, Organization: groups})
	t.KeyUsage, t.IPAddresses = x509.KeyUsageDigitalSignature, addresses
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return a.write(name, der, key)
}

// Kubeconfig issues a certificate and writes NAME.kubeconfig, with which a client uses it.
func (a *Authority) Kubeconfig(name, server, user string, groups ...string) error {
	if err := a.Issue(name, user, groups); err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, server, a.path("ca.crt"), a.path(name+".crt"), a.path(name+".key"))
	return os.WriteFile(a.path(name+".kubeconfig"), []byte(text), 0o600)
}

func (a *Authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *Authority) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(a.path(name+".crt"), text, 0o600); err != nil {
		return err
	}
	text = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	return os.WriteFile(a.path(name+".key"), text, 0o600)
}

// template returns a certificate that is valid now and for a day.
func template(name pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err)
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: name, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour)}
}
