package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// content returns n random bytes.
func content(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// serve starts a server for one handler.
func serve(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// file returns a handler that serves data with ranges and a validator.
func file(data []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// quick are options for small files, without pauses.
func quick() Options {
	return Options{Chunk: 2 << 10, Attempts: 3, Wait: func(context.Context, time.Duration) error { return nil }}
}

// get downloads and returns the content that was stored.
func get(t *testing.T, f File, base string, o Options) ([]byte, error) {
	t.Helper()
	f.Name = "m.gguf"
	r, err := Get(t.Context(), http.DefaultClient, f, base, o)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(PartPath(base))
	if err != nil {
		t.Fatal(err)
	}
	if r.SHA256 != sumOf(data) || r.Size != int64(len(data)) {
		t.Errorf("the result is %+v; the file has %d bytes and %s", r, len(data), sumOf(data))
	}
	return data, nil
}

// TestGet downloads files of several sizes from servers with and without ranges, validators and
// known sizes.
func TestGet(t *testing.T) {
	for _, size := range []int{1, 15, 16, 17, 1024, 1025, 20_000} {
		data := content(size)
		whole := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
		unsized := func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(data)
		}
		for name, h := range map[string]http.HandlerFunc{"ranges": file(data, `"1"`), "weak": file(data, `W/"1"`),
			"no etag": file(data, ""), "whole": whole, "unsized": unsized} {
			for _, f := range []File{{Size: -1}, {Size: int64(size)}, {Size: int64(size), SHA256: sumOf(data)}} {
				f.URL = serve(t, h)
				got, err := get(t, f, filepath.Join(t.TempDir(), "x"), quick())
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s, %d bytes, %+v: %v", name, size, f, err)
				}
			}
		}
	}
}

// TestResume checks that a second run asks for nothing that the first one stored, and that it
// starts again if the file on the server is another one.
func TestResume(t *testing.T) {
	data, other := content(100_000), content(100_001)[1:]
	for _, c := range []struct {
		name   string
		etags  [2]string
		sum    bool
		second []byte
		max    int64 // bytes that the second run may ask for
	}{
		{"same validator", [2]string{`"1"`, `"1"`}, false, data, 60_000},
		{"same checksum", [2]string{`"1"`, `"2"`}, true, data, 60_000},
		{"changed file", [2]string{`"1"`, `"2"`}, false, other, 1 << 20},
		{"no validator", [2]string{"", ""}, false, other, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var served atomic.Int64
			var second atomic.Bool
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case second.Load():
					file(c.second, c.etags[1])(&counting{w, &served}, r)
				case served.Load() > 50_000:
					http.Error(w, "gone", http.StatusGone)
				default:
					file(data, c.etags[0])(&counting{w, &served}, r)
				}
			})
			f := File{URL: url, Size: -1}
			if c.sum {
				f.SHA256 = sumOf(data)
			}
			base := filepath.Join(t.TempDir(), "x")
			o := quick()
			o.Connections = 1
			if _, err := get(t, f, base, o); err == nil || !strings.Contains(err.Error(), "410") {
				t.Fatalf("first run: %v", err)
			}
			if u, err := Inspect(base); err != nil || u.Size != 100_000 {
				t.Errorf("unfinished: %+v, %v", u, err)
			}
			served.Store(0)
			second.Store(true)
			got, err := get(t, f, base, o)
			if err != nil || !bytes.Equal(got, c.second) {
				t.Errorf("second run: %v", err)
			}
			if served.Load() > c.max {
				t.Errorf("the second run asks for %d bytes, want at most %d", served.Load(), c.max)
			}
			if err := Discard(base); err != nil {
				t.Error(err)
			}
			if _, err := Inspect(base); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after Discard: %v", err)
			}
		})
	}
}

// counting counts the bytes of an answer.
type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// TestChangedMeanwhile replaces the file on the server while it is downloaded. The result is one of
// the two, never a mixture.
func TestChangedMeanwhile(t *testing.T) {
	data, other := content(100_000), content(100_001)[1:]
	var served atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if served.Load() > 40_000 {
			file(other, `"2"`)(w, r)
			return
		}
		file(data, `"1"`)(&counting{w, &served}, r)
	})
	o := quick()
	o.Connections = 1
	got, err := get(t, File{URL: url, Size: -1}, filepath.Join(t.TempDir(), "x"), o)
	if err != nil || !bytes.Equal(got, other) {
		t.Errorf("%v", err)
	}
}

// TestRefusals checks the errors about answers that are not the file, and that a wrong checksum
// leaves nothing.
func TestRefusals(t *testing.T) {
	data := append([]byte("GGUF"), content(5000)...)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	page := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!DOCTYPE html><html>sign in</html>") }
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(data)
	}
	lying := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes 7-99/5004")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(data[:90])
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w.(http.Flusher).Flush()
			_, _ = w.Write(data)
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(data); err != nil {
				return
			}
		}
	}
	size := int64(len(data))
	for _, c := range []struct {
		name, want string
		h          http.HandlerFunc
		size       int64
		sum        string
	}{
		{"missing", "404 Not Found; check the name", status(404), size, ""},
		{"login", "401 Unauthorized; the file needs credentials", status(401), size, ""},
		{"broken", "500 Internal Server Error; 3 attempts failed", status(500), size, ""},
		{"page", "sends a web page", page, size, ""},
		{"encoded", "encodes the file", packed, size, ""},
		{"other size", "the server has 5004 bytes, expected are 77", file(data, `"1"`), 77, ""},
		{"other file", `begins with`, file(data[1:], `"1"`), size - 1, ""},
		{"wrong range", "the server sends the range", lying, size, ""},
		{"too long", "expected are 5004", endless, size, ""},
		{"checksum", "wrong checksum", file(data, `"1"`), size, sumOf(nil)},
		{"empty", "begins with", file(nil, `"1"`), -1, ""},
		{"huge", "out of range", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-15/9000000000000000000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[:16])
		}, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "x")
			o := quick()
			o.Magic = "GGUF"
			_, err := get(t, File{URL: serve(t, c.h), Size: c.size, SHA256: c.sum}, base, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if _, err := os.Stat(PartPath(base)); c.sum != "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file with a wrong checksum is kept: %v", err)
			}
		})
	}
}

// TestDamagedPart checks that parts of an earlier run that are damaged are downloaded again.
func TestDamagedPart(t *testing.T) {
	data := content(50_000)
	base := filepath.Join(t.TempDir(), "x")
	f := File{URL: serve(t, file(data, `"1"`)), Size: 50_000, SHA256: sumOf(data)}
	if _, err := get(t, f, base, quick()); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[30_000] ^= 1
	if err := os.WriteFile(PartPath(base), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, f, base, quick()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v", err)
	}
}

// TestCut checks that connections which end early are replaced without losing what they sent.
func TestCut(t *testing.T) {
	data := content(100_000)
	var served atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		file(data, `"1"`)(&cutting{&counting{w, &served}, 5000}, r)
	})
	got, err := get(t, File{URL: url, Size: -1, SHA256: sumOf(data)}, filepath.Join(t.TempDir(), "x"), quick())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v", err)
	}
	if served.Load() > 200_000 {
		t.Errorf("%d bytes were sent for a file of 100000", served.Load())
	}
}

// cutting ends the connection after a number of bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// TestCanceled checks that a canceled download stops and keeps its files.
func TestCanceled(t *testing.T) {
	data := content(100_000)
	ctx, cancel := context.WithCancel(t.Context())
	o := quick()
	o.Progress = func(done, total int64) {
		if done > 20_000 {
			cancel()
		}
	}
	base := filepath.Join(t.TempDir(), "x")
	_, err := Get(ctx, http.DefaultClient, File{URL: serve(t, file(data, `"1"`)), Size: -1, Label: "hf:a/b"}, base, o)
	if u, inspectErr := Inspect(base); !errors.Is(err, context.Canceled) || inspectErr != nil || u.Label != "hf:a/b" {
		t.Errorf("%v; unfinished: %+v, %v", err, u, inspectErr)
	}
}
