package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

var when = time.Unix(1700000000, 5)

// read returns a line per entry.
func read(t *testing.T, r io.Reader) (lines []string) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %o %d %d %s %q", h.Name, h.Mode, h.Uid, h.ModTime.Unix(), h.Uname, data))
	}
}

func TestTar(t *testing.T) {
	files := []File{{"b/c/z", 0o755, []byte("zz")}, {"a", 0o644, []byte("aa")}, {"b/y", 0o644, nil}}
	folder := Folder{"var/lib", 0o700, 7}
	var first bytes.Buffer
	if err := Tar(&first, when, files, folder); err != nil {
		t.Fatal(err)
	}
	want := []string{`a 644 0 1700000000  "aa"`, `b/ 755 0 1700000000  ""`, `b/c/ 755 0 1700000000  ""`,
		`b/c/z 755 0 1700000000  "zz"`, `b/y 644 0 1700000000  ""`, `var/ 755 0 1700000000  ""`,
		`var/lib/ 700 7 1700000000  ""`}
	if got := read(t, bytes.NewReader(first.Bytes())); !slices.Equal(got, want) {
		t.Errorf("entries\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	slices.Reverse(files)
	var second bytes.Buffer
	if err := Gzip(&second, when.In(time.FixedZone("x", 3600)), files, folder); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&second)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, first.Bytes()) || !z.ModTime.IsZero() || z.Name != "" {
		t.Error("the same files in another order and time zone give another archive")
	}
}

func TestTarRefusals(t *testing.T) {
	for _, names := range [][]string{{"/a"}, {"a/"}, {"./a"}, {"../a"}, {"a", "a"}, {"a", "a/b"}, {""}} {
		var files []File
		for _, n := range names {
			files = append(files, File{Name: n})
		}
		if err := Tar(io.Discard, when, files); err == nil {
			t.Errorf("%q was accepted", names)
		}
	}
}
