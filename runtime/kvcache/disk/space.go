package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// slackShare is the share of the limit, one part in slackShare, that is freed in addition when
// objects are evicted, and that a process writes at most before it scans the folder again.
const slackShare = 64

// space tracks the bytes of a folder between two scans of it.
type space struct {
	total atomic.Int64 // bytes of all objects; read without mu, which may be held for long

	mu      sync.Mutex // held during scans and evictions; guards the fields below
	known   bool
	written int64 // by this process since the last scan
}

// add counts an object that was written.
func (s *space) add(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Add(size)
	s.written += size
}

// forget makes the next write scan the folder.
func (s *space) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// Object is an object of a folder as lists show it.
type Object struct {
	Name   Name
	Bytes  int64     // of the file
	Used   time.Time // last read or write
	Pinned bool      // never evicted
}

// makeRoom evicts objects until size more bytes fit.
func (s *Store) makeRoom(size int64) error {
	limit := s.options.Bytes
	if size > limit/2 {
		return fmt.Errorf("%w for a block of %d bytes, more than half of its limit of %d bytes; raise --cache-bytes",
			ErrNoRoom, size, limit)
	}
	sp := &s.space
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.known && sp.total.Load()+size <= limit && sp.written+size <= limit/slackShare {
		return nil
	}
	unlock, err := s.lockFolder()
	if err != nil {
		return err
	}
	defer unlock()
	list, err := s.Objects()
	if err != nil {
		return err
	}
	sp.known, sp.written = true, 0
	sp.total.Store(totalBytes(list))
	if sp.total.Load()+size <= limit {
		return nil
	}
	s.sortByAge(list)
	for _, o := range list {
		if sp.total.Load()+size <= limit-limit/slackShare {
			break
		}
		if o.Pinned {
			continue
		}
		if err := os.Remove(s.path(o.Name)); err == nil {
			s.Checked(o.Name)
			sp.total.Add(-o.Bytes)
			s.counts.evicted.Add(1)
		}
	}
	if total := sp.total.Load(); total+size > limit {
		return fmt.Errorf("%w: pinned blocks take %d of %d bytes; raise --cache-bytes or remove prefixes", ErrNoRoom,
			total, limit)
	}
	return nil
}

// totalBytes returns the sum of the sizes of objects.
func totalBytes(list []Object) (sum int64) {
	for i := range list {
		sum += list[i].Bytes
	}
	return sum
}

// sortByAge sorts the objects that were used longest ago first. A time in the future is from a
// clock that was wrong, so it counts as the oldest.
func (s *Store) sortByAge(list []Object) {
	soon := s.options.Now().Add(time.Minute)
	age := func(o *Object) time.Time {
		if o.Used.After(soon) {
			return time.Time{}
		}
		return o.Used
	}
	slices.SortFunc(list, func(a, b Object) int {
		return cmp.Or(age(&a).Compare(age(&b)), slices.Compare(a.Name[:], b.Name[:]))
	})
}

// lockFolder waits for the lock that processes hold while they evict.
func (s *Store) lockFolder() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the cache folder cannot be locked: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// Objects lists the objects of the folder, in no order. It reads no contents.
func (s *Store) Objects() (list []Object, err error) {
	root := filepath.Join(s.dir, objectsDir)
	folders, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder.Name()))
		if err != nil {
			continue // not a folder
		}
		pinned := map[string]bool{}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), pinSuffix); ok {
				pinned[name] = true
			}
		}
		for _, e := range entries {
			n, ok := objectName(e.Name())
			if !ok {
				continue
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				list = append(list, Object{Name: n, Bytes: info.Size(), Used: info.ModTime(), Pinned: pinned[e.Name()]})
			}
		}
	}
	return list, nil
}

// Info reads the header of an object.
func (s *Store) Info(n Name) (Info, error) {
	f, h, buf, err := s.open(n)
	if err != nil {
		return Info{}, err
	}
	s.release(buf)
	return h.Info, f.Close()
}

// Content reads an object whole.
func (s *Store) Content(ctx context.Context, n Name) (Info, []byte, error) {
	f, h, buf, err := s.open(n)
	if err != nil {
		return Info{}, nil, err
	}
	defer f.Close()
	defer s.release(buf)
	data := make([]byte, 0, h.payload)
	err = h.each(ctx, f, *buf, func(chunk []byte) error {
		data = append(data, chunk...)
		return nil
	})
	return h.Info, data, err
}
