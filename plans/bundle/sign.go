package bundle

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sandwich/plans"
	"sandwich/profiles"
)

// Signed checks that the key has signed the bundle. The error is ErrSignature and says which
// signatures exist.
func (b *Bundle) Signed(key ed25519.PublicKey) error {
	name := base64.StdEncoding.EncodeToString(key)
	for _, s := range b.signatures.List {
		if s.Key != name {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(s.Signature)
		if err != nil || !ed25519.Verify(key, b.manifest, raw) {
			return fmt.Errorf("%w: the signature of the key %s does not match the manifest", plans.ErrSignature, name)
		}
		return nil
	}
	if n := len(b.signatures.List); n > 0 {
		return fmt.Errorf("%w: it has signatures of %d other keys, but none of %s", plans.ErrSignature, n, name)
	}
	return fmt.Errorf("%w: it has no signature", plans.ErrSignature)
}

// Sign signs the bundle at path, a folder or an archive, and replaces an older signature of the
// same key.
func Sign(path string, key ed25519.PrivateKey) error {
	f, b, err := readFiles(path)
	if err != nil {
		return err
	}
	name := base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	s := b.signatures
	s.List = slices.DeleteFunc(s.List, func(x signature) bool { return x.Key == name })
	s.List = append(s.List, signature{name, base64.StdEncoding.EncodeToString(ed25519.Sign(key, b.manifest))})
	slices.SortFunc(s.List, func(a, b signature) int {
		return slices.Compare([]byte(a.Key), []byte(b.Key))
	})
	if len(s.List) > maxSignatures {
		return fmt.Errorf("sign plan %s: it has %d signatures already", path, maxSignatures)
	}
	data, err := profiles.EncodeYAML(s)
	if err != nil {
		return err
	}
	f = slices.DeleteFunc(f, func(x file) bool { return x.name == signatureFile })
	if err := append(f, file{signatureFile, data}).write(path); err != nil {
		return fmt.Errorf("sign plan %s: %w", path, err)
	}
	return nil
}

// ParsePrivateKey parses an Ed25519 key as written by `openssl genpkey -algorithm ed25519`.
func ParsePrivateKey(data []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("not a private key in PEM; make one with `openssl genpkey -algorithm ed25519`")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("invalid private key; make one with `openssl genpkey -algorithm ed25519`")
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("the private key is not an Ed25519 key; make one with `openssl genpkey -algorithm " +
			"ed25519`")
	}
	return private, nil
}

// ParsePublicKey parses an Ed25519 key as written by `openssl pkey -pubout`.
func ParsePublicKey(data []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("not a public key in PEM; make one with `openssl pkey -pubout`")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, errors.New("invalid public key; make one with `openssl pkey -pubout`")
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the public key is not an Ed25519 key; make one with `openssl genpkey -algorithm " +
			"ed25519`")
	}
	return public, nil
}

// signatures is the content of signatureFile: one Ed25519 signature of the manifest's bytes per
// key. `openssl pkeyutl -verify -rawin` can check them too.
type signatures struct {
	Format  string      `yaml:"format"` // always sandwich-signatures
	Version int         `yaml:"version"`
	List    []signature `yaml:"signatures"`
}

type signature struct {
	Key       string `yaml:"key"` // the public key, base64
	Signature string `yaml:"ed25519"`
}

const (
	signatureFormat  = "sandwich-signatures"
	signatureVersion = 1
	maxSignatures    = 32
)

// readSignatures reads the signatures of a bundle. A bundle without signatures is not an error.
func readSignatures(open opener) (s signatures, err error) {
	data, err := open(signatureFile, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return signatures{Format: signatureFormat, Version: signatureVersion}, nil
	}
	if err != nil {
		return s, damaged("%s cannot be read: %v", signatureFile, err)
	}
	if err := profiles.DecodeYAML(data, &s); err != nil {
		return s, damaged("%s: %v", signatureFile, err)
	}
	if s.Format != signatureFormat || s.Version != signatureVersion || len(s.List) > maxSignatures {
		return s,
			damaged("%s has format %.40q, version %d and %d signatures; this build reads %s, version %d, at most %d",
				signatureFile, s.Format, s.Version, len(s.List), signatureFormat, signatureVersion, maxSignatures)
	}
	return s, nil
}
