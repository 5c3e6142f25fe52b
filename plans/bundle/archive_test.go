package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandwich/plans"
	"sandwich/profiles"
)

func packed(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x"+ArchiveSuffix)
	if err := newBundle(t).Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readPacked(data []byte) (*Bundle, error) {
	f, err := readArchive(data)
	if err != nil {
		return nil, err
	}
	return decode(f.open)
}

// TestDamageIsRefused checks that an archive that is cut at any byte, or has one bit flipped at any
// of 2,000 places, is reported as damaged, and so is a folder with such files.
func TestDamageIsRefused(t *testing.T) {
	data := packed(t)
	if _, err := readPacked(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := readPacked(data[:n]); !errors.Is(err, plans.ErrDamaged) {
			t.Fatalf("cut at byte %d of %d: %v", n, len(data), err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bad := bytes.Clone(data)
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		if _, err := readPacked(bad); !errors.Is(err, plans.ErrDamaged) {
			t.Fatalf("a bit of byte %d flipped: %v", at, err)
		}
	}
	whole, err := readArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range whole {
		for n := 0; n < len(x.data); n += 1 + len(x.data)/500 {
			cut := append(files{}, whole...)
			cut[i].data = x.data[:n]
			if _, err := decode(cut.open); !errors.Is(err, plans.ErrDamaged) {
				t.Fatalf("%s cut at byte %d: %v", x.name, n, err)
			}
		}
	}
}

// TestConvertedLines checks that the error for a plan whose line ends version control converted
// names the cause.
func TestConvertedLines(t *testing.T) {
	whole, err := readArchive(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range whole {
		changed := slices.Clone(whole)
		changed[i].data = bytes.ReplaceAll(x.data, []byte("\n"), []byte("\r\n"))
		if _, err := decode(changed.open); err == nil || !strings.Contains(err.Error(), "converted to CRLF") {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestPackingIsDeterministic(t *testing.T) {
	a, b := packed(t), packed(t)
	if !bytes.Equal(a, b) {
		t.Fatal("equal plans give distinct archives")
	}
	dir := written(t, newBundle(t))
	file := filepath.Join(t.TempDir(), "y"+ArchiveSuffix)
	again := filepath.Join(t.TempDir(), "again.plan")
	if err := errors.Join(Copy(dir, file), Copy(file, again)); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); !bytes.Equal(got, a) {
		t.Error("a packed folder differs from the plan written as one file")
	}
	for name, text := range readAll(t, dir) {
		if got := readAll(t, again)[name]; got != text {
			t.Errorf("%s changed on the way", name)
		}
	}
}

// hostile writes an archive with any entries after the sound ones, or instead of them.
func hostile(t *testing.T, sound files, more ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range archiveNames {
		if data, err := sound.open(name, profiles.MaxYAMLBytes); err == nil {
			more = append([]tar.Header{{Name: name, Size: int64(len(data)), Typeflag: tar.TypeReg, Mode: 0o644}},
				more...)
		}
	}
	for _, h := range more {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			data, err := sound.open(h.Name, profiles.MaxYAMLBytes)
			if err != nil {
				data = make([]byte, h.Size)
			}
			if _, err := w.Write(data[:h.Size]); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Flush()
	return out.Bytes()
}

func TestHostileArchives(t *testing.T) {
	sound, err := readArchive(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"symlink": hostile(t, nil, tar.Header{Name: manifestFile, Typeflag: tar.TypeSymlink,
			Linkname: "/etc/passwd"}),
		"hard link": hostile(t, nil, tar.Header{Name: manifestFile, Typeflag: tar.TypeLink, Linkname: "../x"}),
		"device":    hostile(t, nil, tar.Header{Name: manifestFile, Typeflag: tar.TypeChar}),
		"pipe":      hostile(t, nil, tar.Header{Name: manifestFile, Typeflag: tar.TypeFifo}),
		"folder":    hostile(t, nil, tar.Header{Name: "x/", Typeflag: tar.TypeDir}),
		"dots":      hostile(t, nil, tar.Header{Name: "../" + manifestFile, Typeflag: tar.TypeReg}),
		"root":      hostile(t, nil, tar.Header{Name: "/" + manifestFile, Typeflag: tar.TypeReg}),
		"backwards": hostile(t, sound),
		"twice": hostile(t, nil, tar.Header{Name: manifestFile, Typeflag: tar.TypeReg},
			tar.Header{Name: manifestFile, Typeflag: tar.TypeReg}),
		"padding":  append(packed(t), make([]byte, 1<<20)...),
		"trailing": append(packed(t), 'x'),
		"no tar":   []byte("hello"),
		"nothing":  nil,
	} {
		if _, err := readPacked(data); !errors.Is(err, plans.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPaddingOfAHugeFile checks that a sparse file of ten gigabytes is refused by its size before
// it is read.
func TestPaddingOfAHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge"+ArchiveSuffix)
	if err := os.WriteFile(path, packed(t), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 10<<30); err != nil {
		t.Skipf("the temporary folder cannot hold a sparse file of 10 GiB: %v; set TMPDIR", err)
	}
	if _, err := Read(path); !errors.Is(err, plans.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add(packed(f))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := readPacked(data); err != nil && !errors.Is(err, plans.ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
}

func testKey(text string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(text))
	return ed25519.NewKeyFromSeed(seed[:])
}

func TestSign(t *testing.T) {
	one, two := testKey("one"), testKey("two")
	public := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	for _, name := range []string{"x.plan", "x" + ArchiveSuffix} {
		path := filepath.Join(t.TempDir(), name)
		b := newBundle(t)
		if err := b.Write(path); err != nil {
			t.Fatal(err)
		}
		signed := func(k ed25519.PrivateKey) error {
			t.Helper()
			b, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			return b.Signed(public(k))
		}
		if err := signed(one); !errors.Is(err, plans.ErrSignature) || !strings.Contains(err.Error(), "no signature") {
			t.Errorf("unsigned: %v", err)
		}
		if err := errors.Join(Sign(path, one), Sign(path, one)); err != nil {
			t.Fatal(err)
		}
		if err := signed(one); err != nil {
			t.Error(err)
		}
		if err := signed(two); !errors.Is(err, plans.ErrSignature) || !strings.Contains(err.Error(), "1 other keys") {
			t.Errorf("another key: %v", err)
		}
		if err := Sign(path, two); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(signed(one), signed(two)); err != nil {
			t.Error(err)
		}
		f, _, err := readFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		sig, _ := f.open(signatureFile, 1<<16)
		b.Plan.Name = "another"
		if err := b.Write(path); err != nil {
			t.Fatal(err)
		}
		if err := signed(one); !errors.Is(err, plans.ErrSignature) {
			t.Errorf("rewritten: %v", err)
		}
		other, _, err := readFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := append(other, file{signatureFile, sig}).write(path); err != nil {
			t.Fatal(err)
		}
		if err := signed(one); !errors.Is(err, plans.ErrSignature) || !strings.Contains(err.Error(),
			"does not match the "+
				"manifest") {
			t.Errorf("a signature over other bytes: %v", err)
		}
	}
}

// TestRehashedBundle checks that an edited plan with new hashes is rejected if its rules do not
// cover a matrix.
func TestRehashedBundle(t *testing.T) {
	b := newBundle(t)
	table := &b.Plan.Decode.Tables[0]
	table.Rules[len(table.Rules)-1].MHi = 1024
	f, err := b.render()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(f.open); !errors.Is(err, plans.ErrDamaged) || !strings.Contains(err.Error(),
		"the last rule must be open") {
		t.Errorf("%v", err)
	}
}

// TestTwoWriters checks that one complete plan exists after two concurrent writes to one path.
func TestTwoWriters(t *testing.T) {
	for _, name := range []string{"x.plan", "x" + ArchiveSuffix} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		var all sync.WaitGroup
		for i := range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				b := newBundle(t)
				b.Plan.Name = strings.Repeat("x", i+1)
				for range 10 {
					_ = b.Write(path) // may fail if another writer removed the old bundle
				}
			}()
		}
		all.Wait()
		if _, err := Read(path); err != nil {
			t.Error(err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: left behind: %v", name, entries)
		}
	}
}
