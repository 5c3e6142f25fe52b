package disk

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sandwich/runtime/kvcache"
)

// text writes the blocks of a text of n blocks to a store, all of them in store "full" and the last
// one in store "recurrent", and returns its tokens.
func text(t *testing.T, s *Store, seed uint64, n int) (tokens []int32) {
	t.Helper()
	parent := kvcache.Key{}
	for i := range n {
		info, data := block(seed, i, 5000)
		info.Parent = parent
		info.Key = kvcache.NextKey(parent, info.Tokens)
		parent = info.Key
		tokens = append(tokens, info.Tokens...)
		mustWrite(t, s, info, data)
		if i == n-1 {
			info.Store = "recurrent"
			mustWrite(t, s, info, data[:77])
		}
	}
	return tokens
}

func TestPrefixes(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	tokens := text(t, s, 1, 3)
	text(t, s, 2, 2)
	list, err := s.Prefixes()
	if err != nil || len(list) != 2 {
		t.Fatalf("%d prefixes, %v", len(list), err)
	}
	long := &list[0]
	if len(long.Tokens) != len(tokens) {
		long = &list[1]
	}
	if len(long.Objects) != 4 || fmt.Sprint(long.Tokens) != fmt.Sprint(tokens) || long.Pinned || long.Public {
		t.Fatalf("%+v", long)
	}
	if _, err := FindPrefix(list, ""); err == nil {
		t.Error("no digits name a prefix")
	}
	if p, err := FindPrefix(list, strings.ToUpper(long.Name.String()[:9])); err != nil || p.Name != long.Name {
		t.Errorf("not found by its first digits: %v", err)
	}
	// Another text with the same first two blocks shares them.
	info, data := block(9, 2, 5000)
	info.Parent = long.Objects[1].Key
	info.Key = kvcache.NextKey(info.Parent, info.Tokens)
	branch := mustWrite(t, s, info, data)
	if list, err = s.Prefixes(); err != nil || len(list) != 3 {
		t.Fatalf("%d prefixes with a branch, %v", len(list), err)
	}
	p, err := FindPrefix(list, branch.String())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Drop(p, list); n != 1 || err != nil {
		t.Errorf("%d blocks removed with the branch, %v", n, err)
	}
	// A text without its beginning is not listed.
	if err := s.Remove(long.Objects[0].Object.Name); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Prefixes(); err != nil || len(list) != 1 {
		t.Errorf("%d prefixes without a beginning, %v", len(list), err)
	}
}

// TestParentsInACircle checks that the list leaves out objects whose headers name each other as
// parents, as a file that another host has written can.
func TestParentsInACircle(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	text(t, s, 1, 2)
	write := func(n int, key, parent byte) {
		info, data := block(7, n, 100)
		info.Key, info.Parent = kvcache.Key{key}, kvcache.Key{parent}
		mustWrite(t, s, info, data)
	}
	write(4, 1, 1) // its own parent
	write(5, 2, 1)
	write(4, 3, 4)
	write(6, 4, 3)
	write(7, 5, 4)
	list, err := s.Prefixes()
	if err != nil || len(list) != 1 || len(list[0].Tokens) != 2*kvcache.BlockTokens {
		t.Errorf("%d prefixes, %v", len(list), err)
	}
}

// exported returns the manifest of the only prefix of a store, and its contents.
func exported(t *testing.T, s *Store) (manifest []byte, contents [][]byte) {
	t.Helper()
	list, err := s.Prefixes()
	if err != nil || len(list) != 1 {
		t.Fatalf("%d prefixes, %v", len(list), err)
	}
	if manifest, err = s.Export(t.Context(), &list[0]); err != nil {
		t.Fatal(err)
	}
	for i := range list[0].Objects {
		_, data, err := s.Content(t.Context(), list[0].Objects[i].Object.Name)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, data)
	}
	return manifest, contents
}

// TestUncheckedMarks checks that imported blocks are marked until Checked, that blocks that existed
// are not, and that a mark disappears with its block.
func TestUncheckedMarks(t *testing.T) {
	from := mustOpen(t, t.TempDir(), Options{})
	text(t, from, 1, 3)
	manifest, contents := exported(t, from)
	m, err := ParseManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	to := mustOpen(t, t.TempDir(), Options{Bytes: 64 << 10})
	var names []Name
	for range 2 { // the second import finds every block
		names = nil
		for i := range m.Objects {
			n, err := to.Import(t.Context(), m, i, contents[i], kvcache.Salt{7})
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, n)
		}
		to.Checked(names[1])
		if !to.Unchecked(names[2]) || to.Unchecked(names[1]) {
			t.Error("marks do not follow import and comparison")
		}
	}
	if list, err := to.Objects(); err != nil || len(list) != len(names) {
		t.Errorf("%d objects are listed, %v", len(list), err)
	}
	if err := to.Remove(names[0]); err != nil || to.Unchecked(names[0]) {
		t.Errorf("a mark stays without its block: %v", err)
	}
	for i := range 8 { // evicts all imported blocks
		info, data := block(8, i, 5000)
		mustWrite(t, to, info, data)
	}
	if to.Has(names[2]) || to.Unchecked(names[2]) {
		t.Error("a mark stays after the eviction of its block")
	}
}

// TestImport checks that a prefix keeps its content under another salt, and that content and
// manifests that were changed are refused.
func TestImport(t *testing.T) {
	from := mustOpen(t, t.TempDir(), Options{})
	tokens := text(t, from, 1, 3)
	manifest, contents := exported(t, from)
	m, err := ParseManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	to, salt, other := mustOpen(t, t.TempDir(), Options{}), kvcache.Salt{7}, kvcache.Salt{8}
	for i := range m.Objects {
		bad := bytes.Clone(contents[i])
		bad[len(bad)/2] ^= 1
		for _, data := range [][]byte{bad, contents[i][1:], nil} {
			if _, err := to.Import(t.Context(), m, i, data, salt); !errors.Is(err, ErrRefused) {
				t.Errorf("other content was imported: %v", err)
			}
		}
		for _, salt := range []kvcache.Salt{other, salt} {
			if _, err := to.Import(t.Context(), m, i, contents[i], salt); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, k := range append(kvcache.Keys(salt, tokens), kvcache.Keys(other, tokens)...) {
		b := i % (len(tokens) / kvcache.BlockTokens)
		info, data, err := to.Content(t.Context(), NameOf([32]byte{}, "full", k))
		if err != nil || !bytes.Equal(data, contents[b]) || !info.Imported || !info.Public || !info.consistent() {
			t.Errorf("block %d: %+v, %v", b, info, err)
		}
	}
	for what, change := range map[string]func(m *Manifest){
		"format":         func(m *Manifest) { m.Format = "x" },
		"version":        func(m *Manifest) { m.Version++ },
		"identity":       func(m *Manifest) { m.Identity = "zz" },
		"no tokens":      func(m *Manifest) { m.Tokens = nil },
		"part of tokens": func(m *Manifest) { m.Tokens = m.Tokens[:100] },
		"no blocks":      func(m *Manifest) { m.Objects = nil },
		"block":          func(m *Manifest) { m.Objects[0].Block = 3 },
		"negative block": func(m *Manifest) { m.Objects[0].Block = -1 },
		"size":           func(m *Manifest) { m.Objects[0].Bytes = 0 },
		"huge":           func(m *Manifest) { m.Objects[0].Bytes = 1 << 50 },
		"hash":           func(m *Manifest) { m.Objects[0].SHA256 = "00" },
		"store":          func(m *Manifest) { m.Objects[0].Store = strings.Repeat("x", 65) },
	} {
		var m Manifest
		if err := json.Unmarshal(manifest, &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(data); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSignatures(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte(fmt.Sprintf("%x", sha256.Sum256(nil)))
	s := Sign(manifest, private)
	if err := s.Signed(manifest, public); err != nil {
		t.Error(err)
	}
	none := &Signature{}
	for what, err := range map[string]error{"another key": s.Signed(manifest, other),
		"another manifest": s.Signed(manifest[1:], public), "none": none.Signed(manifest, public),
		"nil": (*Signature)(nil).Signed(manifest, public)} {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzManifest checks that no manifest crashes an import.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":"sandwich-prefix","version":1,"identity":"00"}`))
	f.Add([]byte(`{"objects":[{"block":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		s := mustOpen(t, t.TempDir(), Options{})
		for i := range m.Objects {
			if _, err := s.Import(t.Context(), m, i, []byte("x"), kvcache.Salt{}); err == nil &&
				m.Objects[i].SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte("x"))) {
				t.Error("content of another hash was imported")
			}
		}
	})
}
