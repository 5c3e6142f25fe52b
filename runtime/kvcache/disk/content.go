package disk

import (
	"context"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// readBytes is the number of bytes that one call reads, if a chunk is not larger. Small reads leave
// the disk idle while content is checked and copied.
const readBytes = 512 << 10

// readSize returns the bytes that one call reads: whole chunks.
func (h *header) readSize() int { return h.chunk * max(1, readBytes/h.chunk) }

// each calls fn with the content in pieces of up to readSize after it has checked them. buf holds
// readSize bytes.
func (h *header) each(ctx context.Context, f File, buf []byte, fn func([]byte) error) error {
	return h.ranges(ctx, func(at int64, sums []uint32, n int) error {
		data := buf[:n]
		if err := readFull(f, buf[:pages(int64(n))], headerBytes+at); err != nil {
			return err
		}
		if err := h.checkSums([][]byte{data}, sums); err != nil {
			return err
		}
		return fn(data)
	})
}

// fill reads the content into parts and checks it. Ranges whose parts consist of whole pages are
// read without a copy. buf holds readSize bytes.
func (h *header) fill(ctx context.Context, f File, buf []byte, parts [][]byte) error {
	return h.ranges(ctx, func(at int64, sums []uint32, n int) error {
		var to [][]byte
		to, parts = cut(parts, n)
		if !readPages(f, to, headerBytes+at, n) {
			if err := readFull(f, buf[:pages(int64(n))], headerBytes+at); err != nil {
				return err
			}
			data := buf[:n]
			for _, p := range to {
				data = data[copy(p, data):]
			}
		}
		return h.checkSums(to, sums)
	})
}

// ranges calls fn with the offset, the checksums and the size of each range that one call reads.
func (h *header) ranges(ctx context.Context, fn func(at int64, sums []uint32, n int) error) error {
	size := int64(h.readSize())
	for at := int64(0); at < h.payload; at += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(at, h.sums[at/int64(h.chunk):], int(min(size, h.payload-at))); err != nil {
			return err
		}
	}
	return nil
}

// cut splits off the first n bytes of parts.
func cut(parts [][]byte, n int) (first, rest [][]byte) {
	for n > 0 && len(parts) > 0 {
		p := parts[0][:min(len(parts[0]), n)]
		first, n = append(first, p), n-len(p)
		if len(p) < len(parts[0]) {
			return first, append([][]byte{parts[0][len(p):]}, parts[1:]...)
		}
		parts = parts[1:]
	}
	return first, parts
}

// checkSums compares the checksums of the chunks that data consists of.
func (h *header) checkSums(data [][]byte, sums []uint32) error {
	sum, left := uint32(0), h.chunk
	compare := func() error {
		if sum != sums[0] {
			return fmt.Errorf("%w: its content has another checksum", errDamaged)
		}
		sum, left, sums = 0, h.chunk, sums[1:]
		return nil
	}
	for _, p := range data {
		for len(p) > 0 {
			n := min(len(p), left)
			sum, left, p = crc32.Update(sum, castagnoli, p[:n]), left-n, p[n:]
			if left == 0 {
				if err := compare(); err != nil {
					return err
				}
			}
		}
	}
	if left < h.chunk {
		return compare()
	}
	return nil
}

// vectorReader is a File that reads into several pieces of memory with one call.
type vectorReader interface {
	// readVector fills pieces of whole pages from an offset that is a multiple of a page. It
	// returns false if the file or its file system cannot do that; the pieces then hold anything.
	readVector(pieces [][]byte, at int64) bool
}

// readPages fills pieces of n bytes in all without a copy. It returns false if that is not
// possible.
func readPages(f File, pieces [][]byte, at int64, n int) bool {
	v, ok := f.(vectorReader)
	if !ok || n%pageBytes != 0 {
		return false
	}
	for _, p := range pieces {
		if len(p)%pageBytes != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(p)))%pageBytes != 0 {
			return false
		}
	}
	return v.readVector(pieces, at)
}
