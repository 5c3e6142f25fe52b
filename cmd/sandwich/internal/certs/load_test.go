package certs

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// serve answers each TLS connection with the bytes that it receives, until the test ends.
func serve(t *testing.T, p *Pair) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				c := tls.Server(raw, p.Config())
				defer c.Close()
				_, _ = io.Copy(c, c) // an error shows in the client
			})
		}
	})
	return ln.Addr().String()
}

// echo opens a connection, sends a byte and waits for it, and returns the serial number of the
// certificate.
func echo(addr string) (serial int64, c *tls.Conn, err error) {
	c, err = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return 0, nil, err
	}
	if err = ping(c); err != nil {
		c.Close()
		return 0, nil, err
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), c, nil
}

// ping sends a byte and waits for it.
func ping(c *tls.Conn) error {
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// TestReloadUnderLoad replaces the certificate while clients connect: no handshake fails, an open
// connection stays open, and a connection after a reload gets the new certificate.
func TestReloadUnderLoad(t *testing.T) {
	f, expires := newFiles(t), time.Now().Add(time.Hour)
	f.write(t, 1, expires)
	p, err := Load(f.cert, f.key, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, p)
	_, first, err := echo(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	defer clients.Wait()
	defer close(stop)
	for range 4 {
		clients.Go(func() {
			for last := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				serial, c, err := echo(addr)
				if err != nil {
					t.Errorf("after certificate %d: %v", last, err)
					return
				}
				c.Close()
				if serial < last {
					t.Errorf("certificate %d follows %d", serial, last)
				}
				last = serial
			}
		})
	}
	for want := int64(2); want <= 20; want++ {
		f.write(t, want, expires)
		if err := p.reload(); err != nil {
			t.Fatal(err)
		}
		serial, c, err := echo(addr)
		if err != nil || serial != want {
			t.Fatalf("certificate %d, %v, want %d", serial, err, want)
		}
		c.Close()
		if err := ping(first); err != nil {
			t.Fatalf("the first connection ends at certificate %d: %v", want, err)
		}
	}
}
