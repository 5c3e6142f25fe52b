package disk

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
)

// block returns block i of a text, with random content of n bytes.
func block(text uint64, i, n int) (Info, []byte) {
	rng := rand.New(rand.NewPCG(text, uint64(i)))
	info := Info{Model: "m", Store: "full", Block: i, Parent: kvcache.Key{byte(text)}}
	for range kvcache.BlockTokens {
		info.Tokens = append(info.Tokens, int32(rng.IntN(1000)))
	}
	info.Key = kvcache.NextKey(info.Parent, info.Tokens)
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return info, data
}

// mustOpen opens a store without a limit of its rate, which does not wait for the disk unless Files
// is set.
func mustOpen(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	o.WriteRate = -1
	if o.Files == nil {
		o.Files = unsynced{HostFiles()}
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustWrite(t *testing.T, s *Store, info Info, data []byte) Name {
	t.Helper()
	if err := s.Write(t.Context(), info, data); err != nil {
		t.Fatal(err)
	}
	return info.Name()
}

// read reads an object of n bytes into parts of odd sizes.
func read(s *Store, name Name, n int) ([]byte, Info, error) {
	data := make([]byte, n)
	var parts [][]byte
	for at, size := 0, 1; at < n; size = 3*size + 5 {
		end := min(n, at+size)
		parts = append(parts, data[at:end])
		at = end
	}
	info, err := s.Read(context.Background(), name, parts)
	return data, info, err
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{Files: HostFiles()})
	for i, n := range []int{1, 100, 4096, 256 << 10, 256<<10 + 1, 700_001} {
		info, data := block(1, i, n)
		info.Public, info.Portable = i%2 == 0, i%3 == 0
		name := mustWrite(t, s, info, data)
		got, back, err := read(mustOpen(t, dir, Options{Files: HostFiles()}), name, n)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes: read back others, %v", n, err)
		}
		if back.Key != info.Key || back.Public != info.Public || back.Portable != info.Portable || back.Block != i ||
			back.Model != "m" || !back.consistent() {
			t.Errorf("%d bytes: %+v was read back as %+v", n, info, back)
		}
		file, err := os.Stat(s.path(name))
		if err != nil || file.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v, %v", file.Mode(), err)
		}
	}
	info, _ := block(2, 0, 1)
	if _, _, err := read(s, info.Name(), 1); !errors.Is(err, ErrMissing) {
		t.Errorf("a block that was never written: %v", err)
	}
}

// TestNameDependsOnEverything checks that any other model, store or key gives another name.
func TestNameDependsOnEverything(t *testing.T) {
	info, _ := block(1, 0, 1)
	names := map[Name]bool{info.Name(): true}
	for _, change := range []func(i *Info){
		func(i *Info) { i.Identity[31]++ }, func(i *Info) { i.Store = "window of 64" }, func(i *Info) { i.Key[0]++ },
	} {
		other := info
		change(&other)
		names[other.Name()] = true
	}
	if len(names) != 4 {
		t.Errorf("4 different blocks have %d names", len(names))
	}
}

// TestDamagedFiles checks that no damaged file is read as a block, that it is removed, and that one
// warning names it.
func TestDamagedFiles(t *testing.T) {
	const n = 300_000
	info, data := block(1, 0, n)
	other, otherData := block(2, 0, n)
	flip := func(at int64) func(string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			var b [1]byte
			if _, err := f.ReadAt(b[:], at); err != nil {
				return err
			}
			b[0] ^= 4
			_, err = f.WriteAt(b[:], at)
			return err
		}
	}
	cases := map[string]func(path string) error{
		"empty":            func(path string) error { return os.Truncate(path, 0) },
		"no content":       func(path string) error { return os.Truncate(path, headerBytes) },
		"truncated":        func(path string) error { return os.Truncate(path, FileSize(n)-1) },
		"truncated a page": func(path string) error { return os.Truncate(path, FileSize(n)-pageBytes) },
		"longer":           func(path string) error { return os.Truncate(path, FileSize(n)+pageBytes) },
		"holes": func(path string) error {
			return errors.Join(os.Truncate(path, headerBytes), os.Truncate(path, FileSize(n)))
		},
		"magic": flip(0), "version": flip(atVersion), "sum of header": flip(atSum), "size": flip(atPayload + 1),
		"flags": flip(atFlags), "name": flip(atName), "key": flip(atKey + 7), "tokens": flip(atTokens + 9),
		"sum": flip(atSums), "first byte": flip(headerBytes), "last byte": flip(headerBytes + n - 1),
		"middle": flip(headerBytes + n/2),
	}
	for what, damage := range cases {
		warnings := 0
		s := mustOpen(t, t.TempDir(), Options{Warn: func(string) { warnings++ }})
		name := mustWrite(t, s, info, data)
		if err := damage(s.path(name)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, _, err := read(s, name, n); err == nil {
				t.Errorf("%s: the file was read, equal %v", what, bytes.Equal(got, data))
			}
		}
		if s.Has(name) || s.Stats().Damaged != 1 || warnings != 1 {
			t.Errorf("%s: exists %v, %d damaged, %d warnings", what, s.Has(name), s.Stats().Damaged, warnings)
		}
		mustWrite(t, s, info, data)
		if got, _, err := read(s, name, n); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: not written again: %v", what, err)
		}
	}
	s := mustOpen(t, t.TempDir(), Options{})
	name, swapped := mustWrite(t, s, info, data), mustWrite(t, s, other, otherData)
	if err := os.Rename(s.path(swapped), s.path(name)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(s, name, n); !errors.Is(err, errDamaged) {
		t.Errorf("a file of another block was read: %v", err)
	}
	name = mustWrite(t, s, info, data)
	if _, _, err := read(s, name, n-1); !errors.Is(err, errDamaged) {
		t.Errorf("content of another size was read: %v", err)
	}
}

// TestForeignFiles checks that folders and files that other users control are not used.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	info, data := block(1, 0, 100)
	name := mustWrite(t, s, info, data)
	outside := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.Rename(s.path(name), outside), os.Symlink(outside, s.path(name))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(s, name, 100); err == nil {
		t.Error("a symbolic link was followed")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("a folder was opened that everybody may write to")
	}
	if _, err := Open(outside, Options{}); err == nil {
		t.Error("a file was opened as a folder")
	}
	if os.Geteuid() != 0 {
		t.Skip("files of another user need root")
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("a folder of another user was opened")
	}
	if err := errors.Join(os.Chown(dir, 0, -1), os.Remove(s.path(name)), os.Rename(outside, s.path(name)),
		os.Chown(s.path(name), 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(s, name, 100); err == nil {
		t.Error("a file of another user was read")
	}
}

// faulty injects an error into the writes after some bytes, or into the creation of files.
type faulty struct {
	Files
	create, write error
	after         int
}

func (f *faulty) Create(path string) (File, error) {
	if f.create != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: f.create}
	}
	file, err := f.Files.Create(path)
	return &faultyFile{file, f}, err
}

type faultyFile struct {
	File
	of *faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if f.of.after -= len(p); f.of.after < 0 && f.of.write != nil {
		_, _ = f.File.Write(p[:len(p)/2])
		return len(p) / 2, f.of.write
	}
	return f.File.Write(p)
}

// TestFaultsOfWrites checks that a full disk and a read-only folder leave no file, cause one
// warning, and that a full disk is tried again.
func TestFaultsOfWrites(t *testing.T) {
	for what, f := range map[string]*faulty{
		"full": {write: syscall.ENOSPC, after: 200_000}, "quota": {write: syscall.EDQUOT, after: 100},
		"I/O": {write: syscall.EIO, after: 100}, "read-only": {create: syscall.EROFS},
		"permission": {create: syscall.EACCES},
	} {
		warnings := 0
		f.Files = HostFiles()
		s := mustOpen(t, t.TempDir(), Options{Files: f, Warn: func(string) { warnings++ }})
		for i := range 3 {
			info, data := block(1, i, 300_000)
			if err := s.Write(t.Context(), info, data); err == nil || s.Has(info.Name()) {
				t.Errorf("%s: written, %v", what, err)
			}
		}
		if list, err := os.ReadDir(filepath.Join(s.dir, temporaryDir)); len(list) != 0 || err != nil {
			t.Errorf("%s: files are left: %v, %v", what, list, err)
		}
		if warnings != 1 {
			t.Errorf("%s: %d warnings", what, warnings)
		}
		f.write = nil
		info, data := block(1, 0, 300_000)
		if err := s.Write(t.Context(), info, data); (err == nil) != (f.create == nil) || s.Writable() != (err == nil) {
			t.Errorf("%s: after the fault: %v", what, err)
		}
	}
}

// TestOrphans checks that temporary files of ended processes are removed and those in use are kept.
func TestOrphans(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	used, err := s.files.Create(s.temporary())
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	if err := os.WriteFile(s.temporary(), []byte("part"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, Options{})
	if list, _ := os.ReadDir(filepath.Join(dir, temporaryDir)); len(list) != 1 {
		t.Errorf("%d temporary files are left, want the one in use", len(list))
	}
}

// TestCancelledWrite checks that a write that is cancelled while it waits leaves no file.
func TestCancelledWrite(t *testing.T) {
	s, err := Open(t.TempDir(), Options{WriteRate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	info, data := block(1, 0, 300_000)
	time.AfterFunc(time.Millisecond, cancel)
	if err := s.Write(ctx, info, data); !errors.Is(err, context.Canceled) || s.Has(info.Name()) {
		t.Errorf("the write ended with %v", err)
	}
	if list, _ := os.ReadDir(filepath.Join(s.dir, temporaryDir)); len(list) != 0 {
		t.Errorf("%d files are left", len(list))
	}
}

// FuzzHeader checks that no header crashes the reader, and that one that is accepted has the name
// that was asked for.
func FuzzHeader(f *testing.F) {
	info, data := block(1, 0, 5000)
	h := header{Info: info, payload: int64(len(data)), chunk: chunkBytes(5000), sums: []uint32{7}}
	page := make([]byte, pageBytes)
	h.encode(page)
	f.Add(page, 0, byte(0))
	f.Add(page, 600, byte(1))
	f.Fuzz(func(t *testing.T, page []byte, at int, x byte) {
		page = append(page, make([]byte, pageBytes)...)[:pageBytes]
		page[uint(at)%pageBytes] ^= x
		var h header
		if h.decode(page, info.Name()) == nil && (h.Name() != info.Name() || h.chunks() > maxChunks) {
			t.Errorf("accepted %+v", h)
		}
	})
}
