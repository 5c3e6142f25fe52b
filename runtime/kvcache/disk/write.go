package disk

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrNoRoom reports that an object was not written because the cache or the disk has no room.
var ErrNoRoom = errors.New("the cache has no room")

// Write stores an object unless it exists. It evicts other objects first if the store would exceed
// its limit, and writes at most at the rate of Options.WriteRate. When ctx ends, Write stops and
// leaves no file. Callers drop objects that cannot be written: the first fault of each kind is
// reported to Options.Warn.
func (s *Store) Write(ctx context.Context, info Info, data []byte) error {
	if err := info.check(int64(len(data))); err != nil {
		return err
	}
	n := info.Name()
	if s.Has(n) {
		return nil
	}
	if !s.writable.Load() {
		return fs.ErrPermission
	}
	if err := s.makeRoom(FileSize(int64(len(data)))); err != nil {
		return s.failed(err)
	}
	h := header{Info: info, payload: int64(len(data)), chunk: chunkBytes(int64(len(data)))}
	for rest := data; len(rest) > 0; {
		chunk := rest[:min(len(rest), h.chunk)]
		h.sums = append(h.sums, crc32.Checksum(chunk, castagnoli))
		rest = rest[len(chunk):]
	}
	if err := s.write(ctx, &h, data, s.path(n)); err != nil {
		return s.failed(err)
	}
	s.space.add(h.size())
	s.counts.writtenObjects.Add(1)
	s.counts.writtenBytes.Add(h.payload)
	return nil
}

// write writes a file under a temporary name and renames it.
func (s *Store) write(ctx context.Context, h *header, data []byte, path string) (err error) {
	temporary := s.temporary()
	f, err := s.files.Create(temporary)
	if errors.Is(err, fs.ErrNotExist) { // the contents of the folder were removed
		if err = os.MkdirAll(filepath.Dir(temporary), 0o700); err == nil {
			f, err = s.files.Create(temporary)
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = f.Close() // unlocks it, after the rename
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	page := make([]byte, pageBytes)
	h.encode(page)
	if _, err := f.Write(page); err != nil {
		return err
	}
	for rest := data; len(rest) > 0; {
		chunk := rest[:min(len(rest), h.chunk)]
		if err := s.pace.wait(ctx, len(chunk)); err != nil {
			return err
		}
		if _, err := f.Write(chunk); err != nil {
			return err
		}
		rest = rest[len(chunk):]
	}
	clear(page)
	if _, err := f.Write(page[:pages(h.payload)-h.payload]); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return s.files.Rename(temporary, path)
}

// failed reports the first fault of each kind of a write.
func (s *Store) failed(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
	case errors.Is(err, ErrNoRoom):
		s.warn("room", fmt.Sprintf("blocks are not stored in the cache folder %s: %v", s.dir, err))
	case full(err):
		err = fmt.Errorf("%w: %w", ErrNoRoom, err)
		s.warn("full", fmt.Sprintf("the disk of the cache folder %s is full, so blocks are not stored: %v", s.dir, err))
	case readOnly(err):
		s.disable(err)
	default:
		s.warn("write", fmt.Sprintf("blocks cannot be stored in the cache folder %s: %v", s.dir, err))
	}
	return err
}

// pace limits the rate of writes.
type pace struct {
	rate int64 // bytes per second; negative: unlimited
	mu   sync.Mutex
	free time.Time // when the next write may begin
}

// wait waits until n bytes may be written.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate < 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	begin := p.free
	p.free = begin.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	if wait := begin.Sub(now); wait > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}
