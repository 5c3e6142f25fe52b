// Package codecache stores kernels that a device driver has compiled in a folder, so that a later
// process does not compile them again.
//
// A file has the code of one kernel for one driver, with a checksum. Files that are damaged, too
// large, not regular, or that other users may write are ignored. Code on which a driver crashes is
// used only once: [Store.Take] removes the file until the caller puts it back.
package codecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/internal/owner"
	"sandwich/profiles/retention"
)

// Limits of a store in bytes.
const (
	MostCode = 1 << 20 // of the code of a kernel
	maxBytes = 64 << 20
)

const (
	magic   = "sandwich code 1\n"
	suffix  = ".code"
	orphans = time.Hour // age of temporary files that are removed
)

// Key identifies a kernel and the driver that compiled it.
type Key [sha256.Size]byte

// KeyOf returns the key of a list of properties, which must include the driver's version and
// everything that determines the code.
func KeyOf(parts ...[]byte) (k Key) {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(p))) // a hash returns no error
		h.Write(p)
	}
	h.Sum(k[:0])
	return k
}

// Store is a folder of compiled kernels. A nil Store is empty and stores nothing. Its methods may
// be called concurrently, also by several processes. Errors of the file system only cause a
// compilation.
type Store struct {
	dir  string
	max  int64
	mu   sync.Mutex // held while old files are removed
	size int64      // of all files by the last look and later calls of Put
}

// Open opens a folder, and makes it if it does not exist. It refuses a folder that another user
// owns or may write to.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of compiled kernels cannot be used: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the folder of compiled kernels cannot be used: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder", dir)
	case !owner.IsUser(info) || info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("other users may write to the folder of compiled kernels %s; remove their permission "+
			"with chmod go-w", dir)
	}
	s := &Store{dir: dir, max: maxBytes}
	s.prune()
	return s, nil
}

var current atomic.Pointer[Store]

// Use makes drivers that open devices from now on use a store; nil: none.
func Use(s *Store) { current.Store(s) }

// Current returns the store of Use.
func Current() *Store { return current.Load() }

func (s *Store) path(k Key) string { return filepath.Join(s.dir, hex.EncodeToString(k[:])+suffix) }

// Take returns the code of a kernel and removes it, or returns nil if there is none. The caller
// puts it back when the driver has accepted it.
func (s *Store) Take(k Key) []byte {
	if s == nil {
		return nil
	}
	path := s.path(k)
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	ours := info.Mode().IsRegular() && owner.IsUser(info) && info.Mode().Perm()&0o077 == 0
	var data []byte
	if ours {
		data, err = retention.ReadRegular(path, MostCode+int64(len(header(k, nil))))
	}
	if os.Remove(path) != nil || err != nil || !ours { // a file that remains could crash the driver again
		return nil
	}
	n := len(header(k, nil))
	if len(data) <= n || !bytes.Equal(data[:n], header(k, data[n:])) {
		return nil
	}
	return data[n:]
}

// header returns the bytes that precede the code of a kernel in its file.
func header(k Key, code []byte) []byte {
	sum := sha256.Sum256(append(k[:], code...))
	return append([]byte(magic), sum[:]...)
}

// Put keeps the code of a kernel, unless it is empty or too large.
func (s *Store) Put(k Key, code []byte) {
	if s == nil || len(code) == 0 || len(code) > MostCode {
		return
	}
	f, err := os.CreateTemp(s.dir, "new-*") // with permissions 0600
	if err != nil {
		return
	}
	_, err = f.Write(append(header(k, code), code...))
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), s.path(k)) != nil {
		_ = os.Remove(f.Name())
		return
	}
	s.mu.Lock()
	s.size += int64(len(code))
	full := s.size > s.max
	s.mu.Unlock()
	if full {
		s.prune()
	}
}

// prune removes the oldest files if there are too many bytes, and temporary files that remain.
func (s *Store) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	type file struct {
		path string
		size int64
		at   time.Time
	}
	var files []file
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	s.size = 0
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), suffix):
			files = append(files, file{path, info.Size(), info.ModTime()})
			s.size += info.Size()
		case strings.HasPrefix(e.Name(), "new-") && time.Since(info.ModTime()) > orphans:
			_ = os.Remove(path)
		}
	}
	if s.size <= s.max {
		return
	}
	slices.SortFunc(files, func(a, b file) int { return a.at.Compare(b.at) })
	for _, f := range files {
		if s.size <= s.max/4*3 {
			break
		}
		if os.Remove(f.path) == nil {
			s.size -= f.size
		}
	}
}
