package retention

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// content returns the text of a file, or the error of reading it.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// names returns the names in a folder, joined by spaces.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "host.yaml")
	must(t, os.WriteFile(path+".tmp", []byte("of the user"), 0o644))
	for _, text := range []string{"one", "two"} {
		must(t, WriteFile(path, []byte(text)))
		if got := content(path); got != text {
			t.Errorf("read back %q, want %q", got, text)
		}
	}
	if got := content(path + ".tmp"); got != "of the user" {
		t.Errorf("%s.tmp now holds %q", path, got)
	}
	if got := names(t, dir); got != "host.yaml host.yaml.tmp" {
		t.Errorf("the folder holds %s", got)
	}
	if err := WriteFile(filepath.Join(path, "below-a-file"), nil); err == nil {
		t.Error("writing below a file succeeded")
	}
}

// TestWriteFileKeepsMode checks that a file passes its permissions on, and that a new one has those
// that the umask leaves.
func TestWriteFileKeepsMode(t *testing.T) {
	dir := t.TempDir()
	plain, err := os.Create(filepath.Join(dir, "plain"))
	must(t, err)
	must(t, plain.Close())
	st, err := os.Stat(plain.Name())
	must(t, err)
	const newFile = fs.FileMode(1 << 12)
	for _, mode := range []fs.FileMode{newFile, 0, 0o600, 0o640, 0o755, 0o444} {
		path := filepath.Join(dir, mode.String())
		want := mode
		if mode == newFile {
			want = st.Mode()
		} else {
			must(t, os.WriteFile(path, nil, 0o600))
			must(t, os.Chmod(path, mode))
		}
		must(t, WriteFile(path, []byte("new")))
		if st, err := os.Stat(path); err != nil || st.Mode() != want {
			t.Errorf("mode %v became %v, %v", want, st.Mode(), err)
		}
	}
}

func TestWriteFileFollowsLinks(t *testing.T) {
	for name, c := range map[string]struct {
		links map[string]string // by name, below the folder
		write string
		want  string // the file that gets the bytes; "": refused
	}{
		"to a file":        {map[string]string{"a": "sub/file"}, "a", "sub/file"},
		"of a link":        {map[string]string{"a": "sub/b", "sub/b": "file"}, "a", "sub/file"},
		"to no file":       {map[string]string{"a": "sub/new"}, "a", "sub/new"},
		"to no folder":     {map[string]string{"a": "none/new"}, "a", ""},
		"to itself":        {map[string]string{"a": "a"}, "a", ""},
		"loop":             {map[string]string{"a": "b", "b": "a"}, "a", ""},
		"to a folder":      {map[string]string{"a": "sub"}, "a", ""},
		"folder":           {map[string]string{"d": "sub"}, "d/file", "sub/file"},
		"above a link":     {map[string]string{"d": "sub/deep", "a": "d/../file"}, "a", "sub/file"},
		"name above links": {map[string]string{"d": "sub/deep"}, "d/../file", "sub/file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(dir, "sub/deep"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "sub/file"), []byte("old"), 0o600))
			for at, to := range c.links {
				must(t, os.Symlink(to, filepath.Join(dir, at)))
			}
			err := WriteFile(dir+"/"+c.write, []byte("new"))
			if (err == nil) != (c.want != "") {
				t.Fatalf("error %v", err)
			}
			for at, to := range c.links {
				if got, err := os.Readlink(filepath.Join(dir, at)); got != to {
					t.Errorf("the link %s leads to %q now, %v", at, got, err)
				}
			}
			want := "old"
			if c.want != "" {
				want = "new"
			} else {
				c.want = "sub/file"
			}
			if got := content(filepath.Join(dir, c.want)); got != want {
				t.Errorf("%s holds %q, want %q", c.want, got, want)
			}
			err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				if strings.Contains(path, ".tmp-") {
					t.Errorf("%s was left", path)
				}
				return err
			})
			must(t, err)
		})
	}
}

// TestWriteToFails checks that a writer that fails, and Abort, do not change the existing file.
func TestWriteToFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	failed := errors.New("failed")
	err := WriteTo(path, func(w io.Writer) error {
		fmt.Fprint(w, "half of it")
		return failed
	})
	if !errors.Is(err, failed) || content(path) != "old" || names(t, dir) != "file" {
		t.Errorf("%v; it holds %q, the folder %s", err, content(path), names(t, dir))
	}
	f, err := Create(filepath.Join(dir, "new"))
	must(t, err)
	fmt.Fprint(f, "half of it")
	f.Abort()
	f.Abort()
	if got := names(t, dir); got != "file" {
		t.Errorf("after Abort the folder holds %s", got)
	}
}

// TestWriteFileConcurrently checks that of several writers each leaves a whole file and nothing
// else.
func TestWriteFileConcurrently(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10 {
				if err := WriteFile(path, []byte(strings.Repeat(fmt.Sprint(i), 1<<16))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := content(path); len(got) != 1<<16 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("%d bytes of several writers", len(got))
	}
	if got := names(t, dir); got != "file" {
		t.Errorf("the folder holds %s", got)
	}
}

// TestLongNames checks that the temporary name is valid wherever the final one is.
func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	must(t, WriteFile(filepath.Join(dir, strings.Repeat("x", 255)), nil))
	err := WriteFile(filepath.Join(dir, strings.Repeat("x", 256)), nil)
	if err == nil || strings.Contains(err.Error(), ".tmp-") {
		t.Errorf("a name that is too long: %v", err)
	}
	for _, path := range []string{dir, dir + "/", ""} {
		if err := WriteFile(path, nil); err == nil || strings.Contains(err.Error(), ".tmp-") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestMakeDir checks which folders are made, and that errors name symbolic links that lead to none.
func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("file"), nil, 0o600))
	must(t, os.Mkdir(at("folder"), 0o700))
	for link, target := range map[string]string{"loop": "loop", "dangling": "absent", "good": "folder"} {
		must(t, os.Symlink(target, at(link)))
	}
	for path, want := range map[string]string{
		"folder": "", "folder/a/b": "", "good": "", "good/c": "",
		"loop":       "the symbolic link " + at("loop") + " leads to no folder: too many levels of symbolic links",
		"loop/a":     "the symbolic link " + at("loop") + " leads to no folder: too many levels of symbolic links",
		"dangling":   "the symbolic link " + at("dangling") + " leads to no folder: no such file or directory",
		"dangling/a": "the symbolic link " + at("dangling") + " leads to no folder: no such file or directory",
		"file":       "mkdir " + at("file") + ": not a directory",
		"file/a":     "mkdir " + at("file") + ": not a directory",
	} {
		err := MakeDir(at(path), 0o700)
		if want == "" && err == nil {
			if st, err := os.Stat(at(path)); err != nil || !st.IsDir() {
				t.Errorf("%s: %v", path, err)
			}
		} else if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
