package disk

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// unsynced are files that do not wait for the disk.
type unsynced struct{ Files }

func (u unsynced) Create(path string) (File, error) {
	f, err := u.Files.Create(path)
	return unsyncedFile{f}, err
}

// Open reads through the page cache: a direct read would first wait for the writes.
func (u unsynced) Open(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

// TestEviction checks that the objects that were used longest ago are removed, that pinned ones are
// not, that the folder stays within its limit, and that a lack of room is reported once.
func TestEviction(t *testing.T) {
	const size = 16 << 10 // of a file, with its header
	now := time.Now().Add(-time.Hour)
	var warnings []string
	o := Options{Bytes: 64 * size, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}, Warn: func(text string) { warnings = append(warnings, text) }}
	s := mustOpen(t, t.TempDir(), o)
	var names []Name
	write := func() error {
		info, data := block(3, len(names), size-headerBytes)
		names = append(names, info.Name())
		err := s.Write(t.Context(), info, data)
		s.Touch(info.Name())
		return err
	}
	for range 60 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	s.Touch(names[0])
	if err := s.Pin(names[1], true); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if total := s.total(t); total > o.Bytes {
			t.Fatalf("%d bytes of at most %d", total, o.Bytes)
		}
	}
	if !s.Has(names[0]) || !s.Has(names[1]) || s.Has(names[2]) || !s.Has(names[99]) {
		t.Errorf("used %v, pinned %v, unused %v, new %v", s.Has(names[0]), s.Has(names[1]), s.Has(names[2]),
			s.Has(names[99]))
	}
	if err := s.Pin(names[1], false); err != nil || s.Stats().Evicted < 30 {
		t.Errorf("%v, %d evicted", err, s.Stats().Evicted)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	for i := range names {
		if err := s.pinExisting(names[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(); err == nil {
		for range 4 {
			err = errors.Join(err, write())
		}
		if !errors.Is(err, ErrNoRoom) {
			t.Errorf("a folder of pinned blocks: %v", err)
		}
	}
	info, data := block(4, 0, int(o.Bytes))
	if err := s.Write(t.Context(), info, data); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a block larger than the folder: %v", err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "raise --cache-bytes") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestStatsDuringScan checks that Stats does not wait for a scan of the folder, which may take long
// on a slow disk and waits for the scans of other processes.
func TestStatsDuringScan(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	info, data := block(1, 0, 100)
	mustWrite(t, s, info, data)
	s.space.mu.Lock() // as during a scan
	defer s.space.mu.Unlock()
	got := make(chan Stats, 1)
	go func() { got <- s.Stats() }()
	select {
	case st := <-got:
		if st.Bytes != FileSize(100) {
			t.Errorf("%d bytes", st.Bytes)
		}
	case <-time.After(time.Minute):
		t.Fatal("Stats waits for the scan")
	}
}

// pinExisting pins an object that exists.
func (s *Store) pinExisting(n Name) error {
	if !s.Has(n) {
		return nil
	}
	return s.Pin(n, true)
}

// total returns the bytes of all objects.
func (s *Store) total(t *testing.T) (total int64) {
	list, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		total += o.Bytes
	}
	return total
}

// TestClockJumps checks that objects written under a clock that was ahead do not stay for ever.
func TestClockJumps(t *testing.T) {
	const size = 16 << 10
	ahead := 1000 * time.Hour
	s := mustOpen(t, t.TempDir(), Options{Bytes: 64 * size,
		Now: func() time.Time { return time.Now().Add(ahead) }})
	for i := range 130 {
		if i == 60 {
			ahead = 0
		}
		info, data := block(5, i, size-headerBytes)
		s.Touch(mustWrite(t, s, info, data))
	}
	soon := time.Now().Add(time.Minute)
	list, err := s.Objects()
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	for _, o := range list {
		if o.Used.After(soon) {
			t.Errorf("an object of %v is left of %d", o.Used, len(list))
		}
	}
}

// TestTwoStoresShareAFolder checks that two processes keep the limit together and read each other's
// objects.
func TestTwoStoresShareAFolder(t *testing.T) {
	const size = 16 << 10
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	o := Options{Bytes: 100 * size}
	stores := []*Store{mustOpen(t, dir, o), mustOpen(t, dir, o)}
	shared := 0
	for i := range 150 {
		info, data := block(6, i, size-headerBytes)
		name := mustWrite(t, stores[rng.IntN(2)], info, data)
		if _, _, err := read(stores[rng.IntN(2)], name, len(data)); err == nil {
			shared++
		}
		if total := stores[0].total(t); total > o.Bytes {
			t.Fatalf("%d bytes of at most %d after %d objects", total, o.Bytes, i)
		}
	}
	if shared < 145 {
		t.Errorf("%d of 150 objects were read", shared)
	}
	if err := stores[0].Remove(Name{}); err != nil {
		t.Errorf("removing an object that does not exist: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// TestHitRatio replays sessions that return at random on a store and on an exact LRU of the same
// size: the store finds at least 98 % of the blocks that the LRU finds.
func TestHitRatio(t *testing.T) {
	const size, limit, sessions = 8 << 10, 128, 50
	rng := rand.New(rand.NewPCG(8, 8))
	now := time.Now().Add(-24 * time.Hour)
	s := mustOpen(t, t.TempDir(), Options{Bytes: limit * size,
		Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		}})
	var lru []Name // the one used last at the end
	found, ideal := 0, 0
	for range 200 {
		session := min(rng.IntN(sessions), rng.IntN(sessions)) // some return more often
		var used []Name
		for i := range 2 + session%7 {
			info, data := block(uint64(100+session), i, size-headerBytes)
			name := info.Name()
			used = append(used, name)
			if s.Has(name) {
				found++
			} else {
				mustWrite(t, s, info, data)
			}
			if at := slices.Index(lru, name); at >= 0 {
				ideal++
				lru = slices.Delete(lru, at, at+1)
			}
		}
		for _, name := range slices.Backward(used) {
			s.Touch(name)
			lru = append(lru, name)
		}
		lru = lru[max(0, len(lru)-limit):]
	}
	if total := s.total(t); total > limit*size {
		t.Errorf("%d bytes of at most %d", total, limit*size)
	}
	if ratio := float64(found) / float64(ideal); ratio < 0.98 || ideal < 200 {
		t.Errorf("%d blocks found, %d by an exact LRU", found, ideal)
	}
}

// TestRemovedContents checks that a store goes on after another program removed its contents.
func TestRemovedContents(t *testing.T) {
	warnings := 0
	s := mustOpen(t, t.TempDir(), Options{Bytes: 1 << 20, Warn: func(string) { warnings++ }})
	for round := range 2 {
		for i := range 40 { // more than the limit, so that the folder is listed
			info, data := block(7, i, 60_000)
			name := mustWrite(t, s, info, data)
			if _, _, err := read(s, name, len(data)); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		for _, sub := range []string{objectsDir, temporaryDir, lockFile} {
			if err := os.RemoveAll(filepath.Join(s.dir, sub)); err != nil {
				t.Fatal(err)
			}
		}
		info, _ := block(7, 39, 1)
		if _, _, err := read(s, info.Name(), 60_000); !errors.Is(err, ErrMissing) {
			t.Errorf("a removed block: %v", err)
		}
	}
	if warnings > 0 {
		t.Errorf("%d warnings", warnings)
	}
}
