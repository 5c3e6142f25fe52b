package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The two ways a file can be refused. Every error of [Open] and [Parse] that concerns the file's
// content wraps one of them.
var (
	ErrDamaged     = errors.New("damaged GGUF file")     // the bytes contradict the format or each other
	ErrUnsupported = errors.New("unsupported GGUF file") // a sound file of a kind this program does not read
)

// cursor reads little-endian values from a header. The first failure sticks: later reads return
// zeros, and err tells the position of the first one.
type cursor struct {
	data []byte
	pos  int
	err  error
}

// fail records a defect at byte position pos, unless an earlier one is known.
func (c *cursor) fail(kind error, pos int, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: at byte %d: %s", kind, pos, fmt.Sprintf(format, args...))
	}
}

// left is the number of bytes not yet read.
func (c *cursor) left() uint64 { return uint64(len(c.data) - c.pos) }

// take returns the next n bytes, a slice of the file, or nil after a failure.
func (c *cursor) take(n uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.left() {
		c.fail(ErrDamaged, c.pos, "%s needs %d bytes but the file ends after %d; copy or download it again",
			what, n, c.left())
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

// str reads a length and that many bytes.
func (c *cursor) str(what string) []byte {
	n := c.u64(what)
	if c.err == nil && n > c.left() {
		c.fail(ErrDamaged, c.pos-8, "%s says it is %d bytes long but only %d are left in the file", what, n, c.left())
	}
	return c.take(n, what)
}

// count reads a number of things that take at least least bytes each, and refuses a number that the
// rest of the file cannot hold, so that no loop and no allocation is ever larger than the file.
func (c *cursor) count(what string, least uint64) int {
	at := c.pos
	n := c.u64(what)
	if c.err == nil && n > c.left()/least {
		c.fail(ErrDamaged, at, "%s is %d, more than the %d bytes left in the file can hold", what, n, c.left())
		return 0
	}
	return int(n)
}

// show quotes a name from the file for a message, cut to a readable length.
func show(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%.*q...", most, s)
	}
	return fmt.Sprintf("%q", s)
}
