package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzJournal checks that a damaged journal names only chunks of the file.
func FuzzJournal(f *testing.F) {
	want := header{Version: journalVersion, Size: 10_000, SHA256: strings.Repeat("a", 64), Chunk: 1 << 10}
	head := `{"version":1,"size":10000,"sha256":"` + want.SHA256 + `","chunk":1024}` + "\n"
	for _, text := range []string{head + "0\n9\n", head + "10\n-1\n99999999999999999999\n", head + "1", "{}\n", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		base := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(journalPath(base), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(partPath(base), make([]byte, want.Size), 0o600); err != nil {
			t.Fatal(err)
		}
		j, resumed, err := openJournal(base, want)
		if err != nil {
			t.Fatal(err)
		}
		j.close()
		if n := j.bytes(); n < 0 || n > want.Size || !resumed && n > 0 {
			t.Errorf("%q: %d bytes are stored, resumed: %v", text, n, resumed)
		}
	})
}
