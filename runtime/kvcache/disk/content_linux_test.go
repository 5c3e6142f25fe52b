package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"
)

// pagesOf returns n bytes that begin at a page, within memory that is poisoned.
func pagesOf(n int) (data, around []byte) {
	around = bytes.Repeat([]byte{0xa5}, n+3*pageBytes)
	skip := 2*pageBytes - int(uintptr(unsafe.Pointer(&around[0]))%pageBytes)
	return around[skip:][:n:n], around
}

func TestReadIntoPages(t *testing.T) {
	const page = pageBytes
	for name, sizes := range map[string][]int{
		"pages":             {64 * page, page, 127 * page, 200 * page},
		"one part":          {400 * page},
		"odd end":           {130 * page, 90*page + 17},
		"odd parts":         {5, page, 128*page - 5, 70 * page},
		"empty parts":       {0, 129 * page, 0, 0, 3 * page, 0},
		"last range odd":    {128 * page, 100},
		"less than a page":  {100},
		"more than a chunk": {1, 300 * page},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, size := range sizes {
				n += size
			}
			s := mustOpen(t, t.TempDir(), Options{Files: HostFiles()})
			info, want := block(9, n, n)
			object := mustWrite(t, s, info, want)
			var parts, around [][]byte
			for _, size := range sizes {
				p, a := pagesOf(size)
				parts, around = append(parts, p), append(around, a)
			}
			if _, err := s.Read(t.Context(), object, parts); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(bytes.Join(parts, nil), want) {
				t.Error("other content was read")
			}
			for i, a := range around {
				if poison := bytes.Count(a, []byte{0xa5}) - bytes.Count(parts[i], []byte{0xa5}); poison != 3*page {
					t.Errorf("part %d: %d bytes around it were overwritten", i, 3*page-poison)
				}
			}
			path := s.path(object)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file[headerBytes+rand.IntN(n)] ^= 1
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(t.Context(), object, parts); !errors.Is(err, errDamaged) {
				t.Errorf("a flipped bit was read: %v", err)
			}
		})
	}
}

func TestPagesAreReadWithoutCopy(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Files: HostFiles()})
	info, want := block(8, 0, 64*pageBytes)
	f, err := s.files.Open(s.path(mustWrite(t, s, info, want)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, _ := pagesOf(len(want))
	for name, c := range map[string]struct {
		pieces [][]byte
		at     int64
		ok     bool
	}{
		"pages":             {[][]byte{got[:pageBytes], got[pageBytes:]}, headerBytes, true},
		"not at a page":     {[][]byte{got[1 : pageBytes+1]}, headerBytes, false},
		"not whole pages":   {[][]byte{got[:100], got[pageBytes : 2*pageBytes-100]}, headerBytes, false},
		"behind the end":    {[][]byte{got}, headerBytes + pageBytes, false},
		"far after the end": {[][]byte{got}, 1 << 40, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, p := range c.pieces {
				n += len(p)
			}
			if ok := readPages(f, c.pieces, c.at, n); ok != c.ok {
				t.Fatalf("readPages returned %t, want %t", ok, c.ok)
			}
			if c.ok && !bytes.Equal(got, want) {
				t.Error("other content was read")
			}
		})
	}
}
