package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Every error of [Open] and [Parse] about the content of a file wraps one of these.
var (
	ErrDamaged     = errors.New("damaged GGUF file")     // the bytes contradict the format or each other
	ErrUnsupported = errors.New("unsupported GGUF file") // valid, but this package does not read its kind
)

// cursor reads little-endian values from a header. After a failure, err describes the first one and
// further reads return zeros.
type cursor struct {
	data []byte
	pos  int
	err  error
}

// fail records an error at byte position pos, unless an earlier one was recorded.
func (c *cursor) fail(kind error, pos int, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: at byte %d: %s", kind, pos, fmt.Sprintf(format, args...))
	}
}

// remaining returns the number of bytes that were not read.
func (c *cursor) remaining() uint64 { return uint64(len(c.data) - c.pos) }

// take returns the next n bytes, a slice of the file, or nil after a failure.
func (c *cursor) take(n uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.remaining() {
		c.fail(ErrDamaged, c.pos, "%s needs %d bytes but the file ends after %d; copy or download it again",
			what, n, c.remaining())
		return nil
	}
	b := c.data[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// str reads a string: its length in 8 bytes, and its bytes.
func (c *cursor) str(what string) []byte {
	n := c.u64(what)
	if c.err == nil && n > c.remaining() {
		c.fail(ErrDamaged, c.pos-8, "%s says it is %d bytes long but only %d are left in the file", what, n,
			c.remaining())
	}
	return c.take(n, what)
}

// count reads a number of entries of at least minimum bytes each. It fails if the rest of the file
// cannot hold them, so that no loop or allocation over them exceeds the size of the file.
func (c *cursor) count(what string, minimum uint64) int {
	at := c.pos
	n := c.u64(what)
	if c.err == nil && n > c.remaining()/minimum {
		c.fail(ErrDamaged, at, "%s is %d, more than the %d bytes left in the file can hold", what, n, c.remaining())
		return 0
	}
	return int(n)
}

// show quotes a name from the file for a message and shortens it.
func show(s string) string {
	const limit = 64
	if len(s) > limit {
		return fmt.Sprintf("%.*q...", limit, s)
	}
	return fmt.Sprintf("%q", s)
}
