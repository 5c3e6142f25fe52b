package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestSignedAddresses downloads from a server that redirects to addresses whose signature is valid
// for one request, and expires before some of them arrive. A new request to the first server gets a
// new signature.
func TestSignedAddresses(t *testing.T) {
	data := content(200_000)
	for _, code := range []int{http.StatusForbidden, http.StatusBadRequest, http.StatusUnauthorized} {
		var issued, used, refused atomic.Int64
		storage := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n := used.Add(1); n%3 == 0 {
				refused.Add(1)
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(code)
				fmt.Fprint(w, "<Error><Message>Request has expired</Message></Error>")
				return
			}
			file(data, `"1"`)(w, r)
		})
		first := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprintf("%s/x?signature=%d", storage, issued.Add(1)), http.StatusFound)
		})
		o := quick()
		o.Connections = 1
		got, err := get(t, File{URL: first, Size: -1}, filepath.Join(t.TempDir(), "x"), o)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d: %v", code, err)
		}
		if refused.Load() == 0 || issued.Load() != used.Load() {
			t.Errorf("%d: %d signatures for %d requests, of which %d were refused", code, issued.Load(), used.Load(),
				refused.Load())
		}
	}
	always := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/x" {
			http.Redirect(w, r, "/x", http.StatusFound)
			return
		}
		w.Header().Set("X-Error-Message", "Access to model a/b is restricted.")
		w.WriteHeader(http.StatusForbidden)
	})
	var status *StatusError
	_, err := get(t, File{URL: always, Size: -1}, filepath.Join(t.TempDir(), "x"), quick())
	if !errors.As(err, &status) || !status.Denied() || !strings.Contains(err.Error(), "is restricted.") ||
		!strings.Contains(err.Error(), "3 attempts failed") {
		t.Errorf("a server that always refuses: %v", err)
	}
}

// TestRateLimit checks that a server which limits the number of requests is asked again after the
// time that it states, and not at all if that is long.
func TestRateLimit(t *testing.T) {
	data := content(50_000)
	for _, c := range []struct {
		header string
		want   []time.Duration
		failed string
	}{
		{"Retry-After: 7", []time.Duration{7 * time.Second, 7 * time.Second}, ""},
		{`RateLimit: "resolvers";r=0;t=90`, []time.Duration{90 * time.Second, 90 * time.Second}, ""},
		{"X-None: 1", []time.Duration{time.Second, 2 * time.Second}, ""},
		{"Retry-After: 3600", nil, "it accepts requests again in 1h0m0s"},
	} {
		var requests atomic.Int64
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) <= 2 {
				name, value, _ := strings.Cut(c.header, ": ")
				w.Header().Set(name, value)
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			file(data, `"1"`)(w, r)
		})
		o := quick()
		var waits []time.Duration
		o.Wait = func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}
		got, err := get(t, File{URL: url, Size: -1}, filepath.Join(t.TempDir(), "x"), o)
		if c.failed == "" && (err != nil || !bytes.Equal(got, data)) ||
			c.failed != "" && (err == nil || !strings.Contains(err.Error(), c.failed)) {
			t.Errorf("%s: %v", c.header, err)
		}
		if fmt.Sprint(waits) != fmt.Sprint(c.want) {
			t.Errorf("%s: waits %v, want %v", c.header, waits, c.want)
		}
	}
}

// TestRangesIgnored downloads from a server that sends the whole file for some requests of parts.
// With a checksum the download continues.
func TestRangesIgnored(t *testing.T) {
	data := content(200_000)
	var requests, whole atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%3 == 0 {
			whole.Add(1)
			r.Header.Del("Range")
		}
		file(data, `"1"`)(w, r)
	})
	f := File{URL: url, Size: int64(len(data)), SHA256: sumOf(data)}
	o := quick()
	o.Connections = 1
	got, err := get(t, f, filepath.Join(t.TempDir(), "x"), o)
	if err != nil || !bytes.Equal(got, data) || whole.Load() == 0 {
		t.Errorf("%v, %d whole answers", err, whole.Load())
	}
}

// TestNewTag replaces the file during the download on a server that ignores If-Range: it sends
// parts of the new file with a new entity tag. The result is the new file, with and without a
// checksum.
func TestNewTag(t *testing.T) {
	data, other := content(200_000), content(200_001)[1:]
	for _, sum := range []string{"", sumOf(other)} {
		var requests atomic.Int64
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			if requests.Add(1) <= 3 {
				file(data, `"1"`)(w, r)
			} else {
				file(other, `"2"`)(w, r)
			}
		})
		o := quick()
		o.Connections = 1
		base := filepath.Join(t.TempDir(), "x")
		f := File{URL: url, Size: int64(len(other)), SHA256: sum}
		got, err := get(t, f, base, o)
		if sum != "" { // parts of this run are not trusted twice: the next run starts again
			if !errors.Is(err, ErrChecksum) {
				t.Errorf("with a checksum: %v", err)
			}
			got, err = get(t, f, base, o)
		}
		if err != nil || !bytes.Equal(got, other) {
			t.Errorf("checksum %q: %v", sum, err)
		}
	}
}
