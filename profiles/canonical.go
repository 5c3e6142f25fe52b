package profiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// CanonicalJSON encodes v as JSON with sorted keys, without white space and HTML escapes. Hashes
// are computed from this text, so that reformatting a file or reordering struct fields does not
// change them.
func CanonicalJSON(v any) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
	s := sorter{text: text, out: make([]byte, 0, len(text))}
	if s.value(); !s.odd && s.at == len(text) {
		return s.out, nil
	}
	return decodedJSON(text)
}

// decodedJSON returns the canonical form of any JSON text. It decodes the text into values, which
// is slower than sorter.
func decodedJSON(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil { // maps are encoded in key order
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// sorter copies compact JSON as written by encoding/json and sorts the keys of its objects.
type sorter struct {
	text []byte
	at   int
	out  []byte
	odd  bool // a key or string cannot be copied as it is
}

func (s *sorter) value() {
	switch s.peek() {
	case '{':
		s.object()
	case '[':
		s.list()
	case '"':
		s.out = append(s.out, s.string()...)
	default:
		from := s.at
		for s.at < len(s.text) && s.text[s.at] != ',' && s.text[s.at] != ']' && s.text[s.at] != '}' {
			s.at++
		}
		s.out = append(s.out, s.text[from:s.at]...)
	}
}

func (s *sorter) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	s.odd = true
	return 0
}

// string copies a string with its quotes. It sets odd for \u escapes and invalid UTF-8, which
// decoding and encoding may change.
func (s *sorter) string() []byte {
	from := s.at
	for s.at++; s.at < len(s.text) && s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
			s.odd = s.odd || s.at == len(s.text) || s.text[s.at] == 'u' || s.text[s.at] == '/'
		}
	}
	s.at = min(s.at+1, len(s.text))
	s.odd = s.odd || !utf8.Valid(s.text[from:s.at])
	return s.text[from:s.at]
}

func (s *sorter) list() {
	s.out = append(s.out, '[')
	for s.at++; s.peek() != ']' && !s.odd; {
		s.value()
		if s.peek() == ',' {
			s.out = append(s.out, ',')
			s.at++
		}
	}
	s.out = append(s.out, ']')
	s.at++
}

func (s *sorter) object() {
	type member struct {
		key      []byte
		from, to int // of key, colon and value in out
	}
	var members []member
	begin := len(s.out)
	for s.at++; s.peek() != '}' && !s.odd; {
		from := len(s.out)
		key := s.string()
		s.odd = s.odd || bytes.IndexByte(key, '\\') >= 0
		s.out = append(append(s.out, key...), ':')
		s.at++ // the colon
		s.value()
		members = append(members, member{key, from, len(s.out)})
		if s.peek() == ',' {
			s.at++
		}
	}
	s.at++
	order := func(a, b member) int { return bytes.Compare(inner(a.key), inner(b.key)) }
	if !slices.IsSortedFunc(members, order) {
		slices.SortStableFunc(members, order)
	}
	all := make([]byte, 0, len(s.out)-begin+len(members)+2)
	all = append(all, '{')
	for i, m := range members {
		if i > 0 {
			all = append(all, ',')
			s.odd = s.odd || bytes.Equal(members[i-1].key, m.key)
		}
		all = append(all, s.out[m.from:m.to]...)
	}
	s.out = append(append(s.out[:begin], all...), '}')
}

// inner returns a string without its quotes.
func inner(text []byte) []byte { return text[1 : len(text)-1] }

// Digest returns the SHA-256 hash of the canonical JSON of v as "sha256:" and 64 hexadecimal
// digits. It panics if v cannot be encoded.
func Digest(v any) string {
	b, err := CanonicalJSON(v)
	if err != nil {
		panic(fmt.Sprintf("digest of %T: %v", v, err))
	}
	return DigestBytes(b)
}

// DigestBytes returns the SHA-256 hash of b in the format of Digest.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
