// Package certs loads the certificate of a TLS server from files and loads it again when they
// change.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/profiles/retention"
)

const (
	checkInterval   = 5 * time.Second // between two looks at the files
	warningInterval = 24 * time.Hour  // between two warnings about an expired certificate
	maxBytes        = 1 << 20         // of a file
)

// Pair is a certificate with its key. Its methods may be called concurrently.
type Pair struct {
	certFile, keyFile string
	note              func(string) // receives warnings and reports of changes

	current atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	seen   [2]stamp  // of the files that were loaded, or refused, last
	warned time.Time // of the last warning about the validity
}

// stamp identifies the content of a file without reading it. A missing file has the zero stamp.
type stamp struct {
	size     int64
	modified time.Time
	file     os.FileInfo
}

func (s stamp) equal(o stamp) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && (s.file == nil) == (o.file == nil) &&
		(s.file == nil || os.SameFile(s.file, o.file))
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime(), info}
}

// Load reads a certificate, with the chain of its issuers, and its key from PEM files. note
// receives warnings.
func Load(certFile, keyFile string, note func(string)) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, note: note}
	if err := p.reload(); err != nil {
		return nil, err
	}
	return p, nil
}

// reload reads the files again. If they are not valid, the pair keeps its certificate.
func (p *Pair) reload() error {
	commit, err := p.Prepare()
	if err == nil {
		commit()
	}
	return err
}

// Prepare reads the files again and checks them. commit makes the pair use them. If they are not
// valid, the pair keeps its certificate.
func (p *Pair) Prepare() (commit func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, err := p.read()
	if err != nil {
		p.seen = next.of // so that check does not report them too
		return nil, err
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.use(next, time.Now())
	}, nil
}

// version is a certificate with its key, and the files that they were read from.
type version struct {
	of   [2]stamp
	pair tls.Certificate
}

// read reads the files. The result has the stamps of the files also if there is an error.
func (p *Pair) read() (v version, err error) {
	v.of = p.stamps() // before the files are read: a change in between is seen later
	certPEM, err := retention.ReadRegular(p.certFile, maxBytes)
	if err != nil {
		return v, fmt.Errorf("--tls-cert: %w", err)
	}
	keyPEM, err := retention.ReadRegular(p.keyFile, maxBytes)
	if err != nil {
		return v, fmt.Errorf("--tls-key: %w", err)
	}
	if v.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return v, fmt.Errorf("--tls-cert %s and --tls-key %s: %w", p.certFile, p.keyFile, err)
	}
	return v, nil
}

// use makes v the current certificate. The caller holds the lock.
func (p *Pair) use(v version, now time.Time) {
	p.seen = v.of
	p.current.Store(&v.pair)
	p.warned = time.Time{}
	p.warn(now)
}

func (p *Pair) stamps() [2]stamp { return [2]stamp{stampOf(p.certFile), stampOf(p.keyFile)} }

// warn reports a certificate that is not valid at present, once per warningInterval.
func (p *Pair) warn(now time.Time) {
	leaf := p.current.Load().Leaf
	text := validity(leaf, now)
	if text == "" || !p.warned.IsZero() && now.Sub(p.warned) < warningInterval {
		return
	}
	p.warned = now
	p.note(fmt.Sprintf("warning: the certificate %s %s; clients will refuse it", p.certFile, text))
}

// validity returns why a certificate is not valid at a time, or "".
func validity(leaf *x509.Certificate, now time.Time) string {
	switch {
	case now.After(leaf.NotAfter):
		return "expired on " + leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "is valid from " + leaf.NotBefore.UTC().Format(time.RFC3339) + " only"
	}
	return ""
}

// Follow loads the files when they change, and reports an expired certificate daily, until ctx
// ends.
func (p *Pair) Follow(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.check(now)
		}
	}
}

// check loads the files if they have changed. It reports files that are not valid once.
func (p *Pair) check(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.stamps(); at[0].equal(p.seen[0]) && at[1].equal(p.seen[1]) {
		p.warn(now)
		return
	}
	next, err := p.read()
	if err != nil {
		p.seen = next.of
		p.note(fmt.Sprintf("the files of the certificate have changed: %v; the previous certificate stays in use", err))
		return
	}
	p.use(next, now)
	p.note("loaded the certificate " + p.certFile)
}

// Expiry returns the time at which the certificate expires.
func (p *Pair) Expiry() time.Time { return p.current.Load().Leaf.NotAfter }

// Config returns a configuration for TLS 1.2 and later that always uses the current certificate.
// The only protocol is HTTP/1.1.
func (p *Pair) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return p.current.Load(), nil
		},
	}
}
