package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Piece returns the bytes of one token, with special tokens spelled out, or nil for an id outside
// the vocabulary. The bytes may be part of a UTF-8 sequence. The caller must not change them.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.known(id) {
		return nil
	}
	return t.syms.Bytes(id)
}

// Decode returns the joined pieces of ids, with control tokens only if special is set and without
// the space that SPM puts before a text. It is the inverse of Encode. The bytes are exact, so the
// result may not be valid UTF-8; Stream returns valid text.
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

// Stream converts the tokens of one reply to text as they arrive. Its output is always valid UTF-8:
// it holds back the bytes of an incomplete character, and replaces each invalid byte with U+FFFD.
// Control tokens yield nothing unless Special is set. A Stream keeps the space that starts a first
// SPM piece, because a reply continues a text. It must not be used concurrently.
type Stream struct {
	// Special makes control tokens part of the text.
	Special bool

	t       *Tokenizer
	pending []byte // the start of one character, at most three bytes between calls
}

// NewStream returns a stream for one reply.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t, pending: make([]byte, 0, 64)} }

// Push adds a token and returns the text that it completes, which may be empty.
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

// Flush ends the reply: it returns the bytes that were held back, as U+FFFD. The stream can then be
// used for another reply.
func (s *Stream) Flush() string { return s.take(true) }

// take removes the complete characters from pending and returns them; if all is set, it removes
// everything.
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
