package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"sandwich/internal/owner"
	"sandwich/profiles/retention"
)

// Options configures Open. Zero fields take the defaults stated after their descriptions.
type Options struct {
	Bytes     int64          // maximum bytes of all objects; a tenth of the free bytes, at most 20 GiB
	WriteRate int64          // maximum bytes written per second; 50 MB/s; negative: unlimited
	Files     Files          // HostFiles
	Warn      func(s string) // is called once for each kind of fault; may be nil
	Now       func() time.Time
}

// Defaults of Options.
const (
	defaultWriteRate = 50_000_000
	maxDefaultBytes  = 20 << 30
	freeShare        = 10
)

// Store is a folder of objects. Several processes may use it at once; its methods may be called
// concurrently.
type Store struct {
	dir     string
	options Options
	files   Files
	warn    func(kind, text string)
	space   space
	pace    pace
	buffers sync.Pool
	// writable is false after an error that later writes would cause again.
	writable atomic.Bool
	counts   counts
}

// Stats are totals since Open.
type Stats struct {
	ReadObjects, WrittenObjects int64
	ReadBytes, WrittenBytes     int64
	Missing                     int64 // objects that a read did not find
	Damaged                     int64 // objects that were removed
	Evicted                     int64
	Bytes                       int64 // of all objects by the last look at the folder and later writes
}

// counts are the counters of Stats.
type counts struct {
	readObjects, writtenObjects, readBytes, writtenBytes, missing, damaged, evicted atomic.Int64
}

// Open opens a folder, and makes it if it does not exist. It refuses a folder that another user
// owns or may write to. A folder that cannot be written is opened for reading.
func Open(dir string, o Options) (*Store, error) {
	if o.Files == nil {
		o.Files = HostFiles()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WriteRate == 0 {
		o.WriteRate = defaultWriteRate
	}
	s := &Store{dir: dir, options: o, files: o.Files, pace: pace{rate: o.WriteRate}}
	s.warn = warnOnce(o.Warn)
	s.writable.Store(true)
	if err := retention.MakeDir(dir, 0o700); err != nil && !readOnly(err) {
		return nil, fmt.Errorf("the cache folder %s cannot be used: %w", dir, err)
	}
	if err := checkOwner(dir); err != nil {
		return nil, err
	}
	for _, sub := range []string{objectsDir, temporaryDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			s.disable(err)
		}
	}
	if s.options.Bytes <= 0 {
		s.options.Bytes = maxDefaultBytes
		if free := freeBytes(dir); free > 0 {
			s.options.Bytes = min(s.options.Bytes, free/freeShare)
		}
	}
	s.removeOrphans()
	if list, err := s.Objects(); err == nil {
		s.space.total.Store(totalBytes(list))
	}
	return s, nil
}

// Folders of a store.
const (
	objectsDir   = "objects"
	temporaryDir = "tmp"
	lockFile     = "lock"
	pinSuffix    = ".pin"
	// newSuffix marks an imported object that was not compared with a computed one.
	newSuffix = ".new"
)

// checkOwner refuses a folder that another user owns or may write to.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("the cache folder %s cannot be used: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder; name a folder for the cache", dir)
	case !owner.IsUser(info):
		return fmt.Errorf("the cache folder %s belongs to another user; name a folder of this user", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users may write to the cache folder %s; remove their permission with chmod go-w", dir)
	}
	return nil
}

// warnOnce returns a function that passes the first text of each kind.
func warnOnce(to func(string)) func(kind, text string) {
	var seen sync.Map
	return func(kind, text string) {
		if _, before := seen.LoadOrStore(kind, true); !before && to != nil {
			to(text)
		}
	}
}

// disable stops writes after an error that later ones would cause again.
func (s *Store) disable(err error) {
	s.writable.Store(false)
	s.warn("read-only", fmt.Sprintf("the cache folder %s cannot be written, so nothing more is stored: %v", s.dir, err))
}

// Warn passes the first text of a kind of fault to Options.Warn.
func (s *Store) Warn(kind, text string) { s.warn(kind, text) }

// Dir returns the folder.
func (s *Store) Dir() string { return s.dir }

// Limit returns the most bytes of all objects.
func (s *Store) Limit() int64 { return s.options.Bytes }

// WriteRate returns the most bytes written per second, or an estimate if that is not limited.
func (s *Store) WriteRate() float64 {
	const unlimited = 500e6
	if s.options.WriteRate < 0 {
		return unlimited
	}
	return float64(s.options.WriteRate)
}

// Writable reports whether objects can be written.
func (s *Store) Writable() bool { return s.writable.Load() }

// Stats returns the totals. It does not wait for the disk or for other processes.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{ReadObjects: c.readObjects.Load(), WrittenObjects: c.writtenObjects.Load(),
		ReadBytes: c.readBytes.Load(), WrittenBytes: c.writtenBytes.Load(), Missing: c.missing.Load(),
		Damaged: c.damaged.Load(), Evicted: c.evicted.Load(), Bytes: s.space.total.Load()}
}

// path returns the path of an object.
func (s *Store) path(n Name) string {
	hex := n.String()
	return filepath.Join(s.dir, objectsDir, hex[:1], hex)
}

// Has reports whether an object exists. It may still be damaged.
func (s *Store) Has(n Name) bool {
	_, err := os.Lstat(s.path(n))
	return err == nil
}

// Touch marks an object as used now. Objects that were used longest ago are evicted first.
func (s *Store) Touch(n Name) {
	now := s.options.Now()
	_ = os.Chtimes(s.path(n), now, now) // another process may have evicted it
}

// Remove removes an object with its marks.
func (s *Store) Remove(n Name) error {
	path := s.path(n)
	_ = os.Remove(path + pinSuffix)
	defer s.Checked(n)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.space.forget()
	return nil
}

// Pin excludes an object from eviction, or includes it again.
func (s *Store) Pin(n Name, pinned bool) error {
	path := s.path(n) + pinSuffix
	if !pinned {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return mark(path)
}

// mark makes an empty file unless it exists.
func mark(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|noFollow, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Unchecked reports whether an object was imported and not compared with a computed one since.
func (s *Store) Unchecked(n Name) bool {
	_, err := os.Lstat(s.path(n) + newSuffix)
	return !errors.Is(err, fs.ErrNotExist)
}

// Checked records that an imported object was compared and is equal.
func (s *Store) Checked(n Name) {
	if err := os.Remove(s.path(n) + newSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("mark", fmt.Sprintf("imported blocks in %s are compared again at each use: %v", s.dir, err))
	}
}

// setUnchecked marks an object that is about to be imported.
func (s *Store) setUnchecked(n Name) error {
	path := s.path(n) + newSuffix
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return mark(path)
}

// temporary returns a path for an object that is being written.
func (s *Store) temporary() string { return filepath.Join(s.dir, temporaryDir, rand.Text()) }

// removeOrphans removes the temporary files of processes that ended while they wrote. Files in use
// are locked.
func (s *Store) removeOrphans() {
	dir := filepath.Join(s.dir, temporaryDir)
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
		if err != nil {
			continue
		}
		if tryLock(f) {
			_ = os.Remove(path)
		}
		_ = f.Close()
	}
}

// objectName returns the name of the object of a file, and whether it is one.
func objectName(file string) (Name, bool) {
	if strings.HasSuffix(file, pinSuffix) {
		return Name{}, false
	}
	n, err := parseName(file)
	return n, err == nil
}

// buffer returns memory of at least n bytes that begins at a page, for reads past the page cache.
// The caller returns it with release.
func (s *Store) buffer(n int) *[]byte {
	if b, ok := s.buffers.Get().(*[]byte); ok && len(*b) >= n {
		return b
	}
	raw := make([]byte, n+pageBytes)
	skip := (pageBytes - int(uintptr(unsafe.Pointer(&raw[0]))%pageBytes)) % pageBytes
	b := raw[skip : skip+n]
	return &b
}

func (s *Store) release(b *[]byte) { s.buffers.Put(b) }
