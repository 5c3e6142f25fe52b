//go:build unix

package fetch

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var kills = flag.Int("kills", 20, "number of downloads that TestKilled kills")

// Variables of the environment of a child process that downloads.
const (
	childURL  = "FETCH_TEST_URL"
	childBase = "FETCH_TEST_BASE"
)

// memoryFolder is a folder in memory on most Linux systems.
const memoryFolder = "/dev/shm"

// TestMain makes this test binary stand in for a process that downloads.
func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		o := quick()
		o.Chunk = 4 << 10
		_, err := Get(context.Background(), http.DefaultClient, File{URL: url, Size: -1}, os.Getenv(childBase), o)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if f, err := os.CreateTemp(memoryFolder, ""); err == nil { // tests need not wait for a disk
		f.Close()
		os.Remove(f.Name())
		os.Setenv("TMPDIR", memoryFolder)
	}
	os.Exit(m.Run())
}

// TestKilled kills downloads of one file with SIGKILL after random numbers of bytes. The next
// process continues, and the complete file is right.
func TestKilled(t *testing.T) {
	const size = 1 << 20
	data := content(size)
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	base := filepath.Join(t.TempDir(), "x")
	var mu sync.Mutex
	var left int // bytes until kill is called
	kill := func() {}
	serveFile := file(data, `"1"`)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		serveFile(&deadly{w, func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if left -= n; left <= 0 {
				kill()
				kill = func() {}
			}
		}}, r)
	})
	killed, total := 0, 0
	for killed < *kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childURL+"="+url, childBase+"="+base)
		mu.Lock()
		left, kill = r.IntN(2*size / *kills), func() { _ = cmd.Process.Kill() }
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		mu.Unlock()
		if err := cmd.Wait(); err != nil {
			killed++
		} else if got, err := os.ReadFile(PartPath(base)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("after %d kills: %d bytes, %v", killed, len(got), err)
		} else if err := Discard(base); err != nil {
			t.Fatal(err)
		}
		if total++; total > 10**kills {
			t.Fatalf("only %d of %d processes were killed", killed, total)
		}
	}
	mu.Lock()
	kill = func() {}
	mu.Unlock()
	got, err := get(t, File{URL: url, Size: -1}, base, quick())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("after %d kills: %v", killed, err)
	}
}

// deadly reports each number of bytes that is sent.
type deadly struct {
	http.ResponseWriter
	sent func(n int)
}

func (d *deadly) Write(p []byte) (n int, err error) {
	for len(p) > 0 { // in small pieces, so that the moment is random
		k := min(len(p), 777)
		m, err := d.ResponseWriter.Write(p[:k])
		if n += m; err != nil {
			return n, err
		}
		d.sent(m)
		p = p[k:]
	}
	return n, nil
}
