package disk

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"sandwich/runtime/kvcache"
)

// Manifest describes a prefix that travels to another folder. It names the contents of all blocks
// by their hashes, so that a signature of its bytes covers them.
type Manifest struct {
	Format   string          `json:"format"` // always manifestFormat
	Version  int             `json:"version"`
	Model    string          `json:"model"`
	Identity string          `json:"identity"` // of model, arithmetic and layout, hexadecimal
	Portable bool            `json:"portable"`
	Tokens   []int32         `json:"tokens"`
	Objects  []ManifestBlock `json:"objects"`

	salt kvcache.Salt  // of keys
	keys []kvcache.Key // of the blocks of Tokens; nil before Import
}

// ManifestBlock is one block of a Manifest.
type ManifestBlock struct {
	Store  string `json:"store"`
	Block  int    `json:"block"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

const (
	manifestFormat  = "sandwich-prefix"
	manifestVersion = 1

	// Limits of a manifest.
	maxManifest      = 4 << 20
	maxManifestBlock = 1 << 14
)

// ErrRefused is wrapped by errors about the content of a manifest or of its blocks.
var ErrRefused = errors.New("refused")

func refused(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, a...))
}

// Export returns the manifest of a prefix. It reads and checks all objects.
func (s *Store) Export(ctx context.Context, p *Prefix) ([]byte, error) {
	m := Manifest{Format: manifestFormat, Version: manifestVersion, Model: p.Model,
		Identity: hex.EncodeToString(p.Identity[:]), Portable: p.Portable, Tokens: p.Tokens}
	for i := range p.Objects {
		o := &p.Objects[i]
		_, data, err := s.Content(ctx, o.Object.Name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		m.Objects = append(m.Objects, ManifestBlock{o.Store, o.Block, int64(len(data)), hex.EncodeToString(sum[:])})
	}
	data, err := json.Marshal(m)
	if err == nil && (len(data) > maxManifest || len(m.Objects) > maxManifestBlock) {
		err = refused("a prefix of %d tokens is too long to travel", len(p.Tokens))
	}
	return data, err
}

// ParseManifest parses and checks the bytes of a manifest.
func ParseManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if len(data) > maxManifest {
		return nil, refused("its manifest has more than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, refused("its manifest is not valid JSON")
	}
	if m.Format != manifestFormat || m.Version != manifestVersion {
		return nil, refused("it has format %.40q, version %d; this build reads %s, version %d", m.Format, m.Version,
			manifestFormat, manifestVersion)
	}
	raw, err := hex.DecodeString(m.Identity)
	blocks := len(m.Tokens) / kvcache.BlockTokens
	if err != nil || len(raw) != sha256.Size || len(m.Model) > 1024 || blocks < 1 ||
		len(m.Tokens)%kvcache.BlockTokens != 0 || len(m.Objects) < 1 || len(m.Objects) > maxManifestBlock {
		return nil, refused("its manifest has no identity, tokens or blocks of a prefix")
	}
	for i := range m.Objects {
		b := &m.Objects[i]
		sum, err := hex.DecodeString(b.SHA256)
		if err != nil || len(sum) != sha256.Size || b.Block < 0 || b.Block >= blocks || b.Bytes < 1 ||
			b.Bytes > 1<<40 || len(b.Store) > maxText {
			return nil, refused("block %d of its manifest is invalid", i)
		}
	}
	return m, nil
}

// keysUnder returns the keys of the blocks of the text under a salt.
func (m *Manifest) keysUnder(salt kvcache.Salt) []kvcache.Key {
	if m.keys == nil || m.salt != salt {
		m.salt, m.keys = salt, kvcache.Keys(salt, m.Tokens)
	}
	return m.keys
}

// Import stores block i of a manifest under a salt, marked as Unchecked, unless the block exists.
// It refuses content with another hash than that of the manifest. It must not be called
// concurrently for one manifest.
func (s *Store) Import(ctx context.Context, m *Manifest, i int, data []byte, salt kvcache.Salt) (Name, error) {
	b := &m.Objects[i]
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.SHA256 || int64(len(data)) != b.Bytes {
		return Name{}, refused("block %d has other content than the manifest says", i)
	}
	info := Info{Model: m.Model, Store: b.Store, Block: b.Block, Parent: kvcache.Key(salt), Public: true,
		Portable: m.Portable, Imported: true, Tokens: m.Tokens[b.Block*kvcache.BlockTokens:][:kvcache.BlockTokens]}
	info.Model = info.Model[:min(len(info.Model), maxText)]
	if _, err := hex.Decode(info.Identity[:], []byte(m.Identity)); err != nil {
		return Name{}, refused("its identity is invalid")
	}
	keys := m.keysUnder(salt)
	info.Key = keys[b.Block]
	if b.Block > 0 {
		info.Parent = keys[b.Block-1]
	}
	n := info.Name()
	if s.Has(n) {
		return n, nil
	}
	if err := s.setUnchecked(n); err != nil {
		return n, s.failed(err)
	}
	err := s.Write(ctx, info, data)
	if err == nil {
		err = s.setUnchecked(n) // an eviction may have removed the mark meanwhile
	}
	return n, err
}

// Signature is the signature of the bytes of a manifest.
type Signature struct {
	Key       string `json:"key"` // the public key, base64
	Signature string `json:"ed25519"`
}

// Sign signs the bytes of a manifest.
func Sign(manifest []byte, key ed25519.PrivateKey) Signature {
	return Signature{base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)),
		base64.StdEncoding.EncodeToString(ed25519.Sign(key, manifest))}
}

// Signed returns an error unless a key has signed the bytes of a manifest.
func (s *Signature) Signed(manifest []byte, key ed25519.PublicKey) error {
	if s == nil || s.Key == "" {
		return refused("it has no signature")
	}
	raw, err := base64.StdEncoding.DecodeString(s.Signature)
	if s.Key != base64.StdEncoding.EncodeToString(key) || err != nil || !ed25519.Verify(key, manifest, raw) {
		return refused("the key did not sign it")
	}
	return nil
}
