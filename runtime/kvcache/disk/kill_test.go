//go:build unix

package disk

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"testing"
	"time"
)

// kills is the number of writers that `make kills` kills; other runs kill a few.
var kills = flag.Int("kills", 2, "processes that TestKilledWriters kills while they write")

// TestKilledWriters kills processes while they write: every object that exists afterwards is whole,
// and no temporary file stays.
func TestKilledWriters(t *testing.T) {
	const size = 300_000
	if dir := os.Getenv("SANDWICH_TEST_WRITER"); dir != "" {
		s := mustOpen(t, dir, Options{Files: HostFiles()})
		for i := 0; ; i++ {
			info, data := block(uint64(os.Getpid()), i, size)
			_ = s.Write(t.Context(), info, data)
		}
	}
	dir, whole := t.TempDir(), 0
	for i := range *kills {
		c := exec.Command(os.Args[0], "-test.run=^TestKilledWriters$")
		c.Env = append(os.Environ(), "SANDWICH_TEST_WRITER="+dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 2*time.Minute; {
			if list, err := mustOpen(t, dir, Options{}).Objects(); err == nil && len(list) > whole {
				break
			}
		}
		time.Sleep(time.Duration(i%10) * time.Millisecond) // spreads the kills over a write
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // the kill
		s := mustOpen(t, dir, Options{})
		list, err := s.Objects()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			info, content, err := s.Content(t.Context(), o.Name)
			if err != nil {
				t.Fatalf("after kill %d: %v", i, err)
			}
			if _, n, err := s.Verify(t.Context(), o.Name); err != nil || int(n) != size || !info.consistent() ||
				bytes.Count(content, []byte{0}) > size/50 {
				t.Fatalf("after kill %d: an object of %d bytes, %v", i, n, err)
			}
		}
		whole = len(list)
		if left, _ := os.ReadDir(dir + "/" + temporaryDir); len(left) != 0 {
			t.Fatalf("after kill %d: %d temporary files are left", i, len(left))
		}
	}
	if whole == 0 {
		t.Error("no object was written before a kill")
	}
}
