package fetch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJournalCutAnywhere cuts a journal at each byte: the remaining lines list a subset of the
// stored chunks, and lines that are added later are read.
func TestJournalCutAnywhere(t *testing.T) {
	base := filepath.Join(t.TempDir(), "j")
	path := journalPath(base)
	want := header{Version: journalVersion, Size: 1 << 17, SHA256: strings.Repeat("a", 64), Chunk: 1 << 10}
	j, _, err := openJournal(base, want)
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int{3, 100, 12} {
		if err := j.store(chunk); err != nil {
			t.Fatal(err)
		}
	}
	j.close()
	if err := os.WriteFile(partPath(base), make([]byte, want.Size), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, _, err := openJournal(base, want)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		if err := os.WriteFile(partPath(base), make([]byte, want.Size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := j.store(77); err != nil {
			t.Fatal(err)
		}
		j.close()
		if j, _, err = openJournal(base, want); err != nil {
			t.Fatal(err)
		}
		j.close()
		for i, ok := range j.stored {
			if allowed := i == 3 || i == 100 || i == 12; ok && !allowed && i != 77 || !ok && i == 77 {
				t.Errorf("cut to %d bytes: chunk %d is stored: %v", n, i, ok)
			}
		}
	}
}

// TestLinkedFileIsKept checks that a download which starts again leaves a file alone that the
// earlier run linked elsewhere.
func TestLinkedFileIsKept(t *testing.T) {
	for _, damage := range []func(base string) error{
		func(base string) error { return nil },
		func(base string) error { return os.Remove(journalPath(base)) },
		func(base string) error { return os.Truncate(journalPath(base), 3) },
	} {
		data := content(20_000)
		base := filepath.Join(t.TempDir(), "x")
		if _, err := get(t, File{URL: serve(t, file(data, "")), Size: -1}, base, quick()); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(PartPath(base), base+".model"); err != nil {
			t.Fatal(err)
		}
		if err := damage(base); err != nil {
			t.Fatal(err)
		}
		other := content(20_001)[1:]
		if got, err := get(t, File{URL: serve(t, file(other, "")), Size: -1}, base, quick()); err != nil ||
			!bytes.Equal(got, other) {
			t.Errorf("%v", err)
		}
		if got, err := os.ReadFile(base + ".model"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the linked file changed: %v", err)
		}
	}
}
