package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is the time between two attempts to lock.
const lockPoll = 50 * time.Millisecond

// Lock waits until no other process holds the lock of a download or of the store, and takes it. It
// calls waiting once if it has to wait. The lock ends with the process. It returns the start of the
// paths of the download.
func (s *Store) Lock(ctx context.Context, key string, waiting func()) (base string, unlock func(), err error) {
	if err := s.prepare(); err != nil {
		return "", nil, err
	}
	path := s.base(key) + lockSuffix
	for told := false; ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return "", nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && current(f, path) {
			return s.base(key), func() {
				os.Remove(path) // while the lock is held: other processes then open a new file
				f.Close()
			}, nil
		}
		f.Close()
		if err == nil {
			continue // the file was removed by the process that held the lock
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, fmt.Errorf("%s cannot be locked: %w", path, err)
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return "", nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// current reports whether a path still names an open file.
func current(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
