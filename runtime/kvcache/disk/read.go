package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"sandwich/internal/owner"
)

// ErrMissing reports an object that does not exist, or no longer.
var ErrMissing = errors.New("the cache does not have the block")

// Read reads an object into parts, which together have the size of its content. On an error the
// parts may have been overwritten. A damaged object is removed. When ctx ends, Read soon returns
// its error.
func (s *Store) Read(ctx context.Context, n Name, parts [][]byte) (Info, error) {
	f, h, buf, err := s.open(n)
	if err != nil {
		return Info{}, s.fault(n, err)
	}
	defer f.Close()
	defer s.release(buf)
	want := int64(0)
	for _, p := range parts {
		want += int64(len(p))
	}
	if want != h.payload {
		return h.Info, s.fault(n, fmt.Errorf("%w: its content has %d bytes instead of %d", errDamaged, h.payload, want))
	}
	if err := h.fill(ctx, f, *buf, parts); err != nil {
		return h.Info, s.fault(n, err)
	}
	s.counts.readObjects.Add(1)
	s.counts.readBytes.Add(h.payload)
	return h.Info, nil
}

// Verify reads an object and checks its content. It returns the size of the content.
func (s *Store) Verify(ctx context.Context, n Name) (Info, int64, error) {
	f, h, buf, err := s.open(n)
	if err != nil {
		return Info{}, 0, err
	}
	defer f.Close()
	defer s.release(buf)
	if !h.consistent() {
		return h.Info, h.payload, fmt.Errorf("%w: its key does not follow from its tokens", errDamaged)
	}
	return h.Info, h.payload, h.each(ctx, f, *buf, func([]byte) error { return nil })
}

// Damaged reports whether an error of Verify means that the object is damaged.
func Damaged(err error) bool { return errors.Is(err, errDamaged) }

// open opens an object and reads its header. buf has room for the bytes that one call reads; the
// caller closes the file and releases buf.
func (s *Store) open(n Name) (f File, h *header, buf *[]byte, err error) {
	if f, err = s.files.Open(s.path(n)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrMissing
		}
		return nil, nil, nil, err
	}
	h, buf = &header{}, s.buffer(headerBytes)
	if err := h.read(f, n, (*buf)[:headerBytes]); err != nil {
		s.release(buf)
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	if len(*buf) < h.readSize() {
		s.release(buf)
		buf = s.buffer(h.readSize())
	}
	return f, h, buf, nil
}

// read reads the header of a file and checks the file's owner, name and size.
func (h *header) read(f File, n Name, page []byte) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || !owner.IsUser(info):
		return errors.New("a file is not a regular file of this user")
	}
	if err := readFull(f, page, 0); err != nil {
		return err
	}
	if err := h.decode(page, n); err != nil {
		return err
	}
	if info.Size() != h.size() {
		return fmt.Errorf("%w: it has %d bytes instead of %d", errDamaged, info.Size(), h.size())
	}
	return nil
}

// readFull reads len(p) bytes; a file that is shorter is damaged.
func readFull(f io.ReaderAt, p []byte, at int64) error {
	if n, err := f.ReadAt(p, at); n < len(p) {
		if err == nil || errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it is truncated", errDamaged)
		}
		return err
	}
	return nil
}

// fault counts a failed read and removes a damaged object.
func (s *Store) fault(n Name, err error) error {
	switch {
	case errors.Is(err, ErrMissing):
		s.counts.missing.Add(1)
	case errors.Is(err, errDamaged):
		s.counts.damaged.Add(1)
		_ = s.Remove(n)
		s.warn("damaged", fmt.Sprintf("a block of the cache in %s was removed and is computed again: %v", s.dir, err))
	case errors.Is(err, context.Canceled):
	default:
		s.warn("read", fmt.Sprintf("blocks of the cache in %s cannot be read and are computed again: %v", s.dir, err))
	}
	return err
}
