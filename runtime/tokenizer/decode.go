package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Piece returns the bytes of one token, special tokens written out; nil for an id outside the
// vocabulary. They may be part of a UTF-8 sequence. The caller must not change them.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.known(id) {
		return nil
	}
	return t.syms.bytes(id)
}

// Decode is the inverse of Encode: the joined pieces of ids, with control tokens only if special is
// set, and without the space that SPM puts before a text. The bytes are exact, so that the result
// need not be UTF-8; Stream makes text.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	var text strings.Builder
	strip := t.isSPM && t.addSpace
	for _, id := range ids {
		if !special && t.IsControl(id) {
			continue
		}
		piece := t.Piece(id)
		if strip && len(piece) > 0 && piece[0] == ' ' {
			piece = piece[1:]
		}
		strip = false
		text.Write(piece)
	}
	return text.String()
}

// Stream turns the tokens of one running reply into text, piece by piece. It is UTF-8 at every
// point: bytes of a character that is not complete are held back, and bytes that are no UTF-8
// become U+FFFD, one each. Control tokens yield nothing unless Special is set. The space that
// starts a first SPM piece is kept, since a reply continues a text.
type Stream struct {
	// Special writes out control tokens.
	Special bool

	t       *Tokenizer
	pending []byte // the start of one character, at most three bytes
}

// NewStream starts a reply.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t, pending: make([]byte, 0, 64)} }

// Push returns the text that token id completes, which is often its piece and may be empty.
func (s *Stream) Push(id int32) string {
	if !s.Special && s.t.IsControl(id) {
		return ""
	}
	piece := s.t.Piece(id)
	if len(s.pending) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	s.pending = append(s.pending, piece...)
	return s.take(false)
}

// Flush returns what is held back, as U+FFFD, when the reply is over. The stream can then be used
// for another one.
func (s *Stream) Flush() string { return s.take(true) }

// take removes whole characters from pending; with all, everything.
func (s *Stream) take(all bool) string {
	var text strings.Builder
	rest := s.pending
	for len(rest) > 0 && (all || utf8.FullRune(rest)) {
		r, n := utf8.DecodeRune(rest)
		text.WriteRune(r)
		rest = rest[n:]
	}
	s.pending = append(s.pending[:0], rest...)
	return text.String()
}
