package profiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// CanonicalJSON renders v as JSON with sorted keys, no white space and no HTML escapes. Hashes are
// taken over this text and never over YAML, so that a file may be reformatted, or its struct fields
// reordered, without becoming another one.
func CanonicalJSON(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
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

// Digest is the sha256 of the canonical JSON of v, as "sha256:" and 64 hexadecimal digits. It
// panics when v cannot be rendered as JSON, which for the plain data of this program is a
// programming error.
func Digest(v any) string {
	b, err := CanonicalJSON(v)
	if err != nil {
		panic(fmt.Sprintf("digest of %T: %v", v, err))
	}
	return DigestBytes(b)
}

// DigestBytes is the sha256 of b in the notation of Digest.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
