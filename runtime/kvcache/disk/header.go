package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"

	"sandwich/runtime/kvcache"
)

// Name is the name of an object: a hash of what its content depends on.
type Name [sha256.Size]byte

// String returns the name in hexadecimal digits.
func (n Name) String() string { return hex.EncodeToString(n[:]) }

// parseName parses the hexadecimal digits of a name.
func parseName(text string) (n Name, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(n) {
		return n, fmt.Errorf("%.80q is not the name of a cached block; give 64 hexadecimal digits", text)
	}
	return Name(raw), nil
}

// Info describes an object.
type Info struct {
	Model    string            // name of the model, for lists; not part of the object's name
	Identity [sha256.Size]byte // model, arithmetic and layout of the content
	Store    string            // name of the kind of the store
	Block    int               // number of the block in its text
	Key      kvcache.Key       // salt and tokens up to the end of the block
	Parent   kvcache.Key       // of the block before it, or the salt
	Tokens   []int32           // of the block
	Public   bool              // the salt is the public one, which every key may read
	Portable bool              // the content has the same bits on every machine
	Imported bool              // from another host
}

// Name returns the name of the object.
func (i *Info) Name() Name { return NameOf(i.Identity, i.Store, i.Key) }

// NameOf returns the name of the object of a block.
func NameOf(identity [sha256.Size]byte, store string, key kvcache.Key) Name {
	const domain = "sandwich cached block 1\x00"
	var buf [len(domain) + 2*sha256.Size + maxText]byte
	b := append(buf[:0], domain...)
	b = append(b, identity[:]...)
	b = append(b, key[:]...)
	return sha256.Sum256(append(b, store...))
}

// consistent reports whether the key of an object follows from its parent and its tokens.
func (i *Info) consistent() bool { return kvcache.NextKey(i.Parent, i.Tokens) == i.Key }

// Layout of the header, in bytes. Integers are little-endian.
const (
	headerBytes = pageBytes
	magic       = "SWPREFIX"
	version     = 1
	maxText     = 64 // of Store and Model
	maxChunks   = 256

	atVersion  = 8
	atSum      = 12 // CRC-32C of the header with zeros here
	atPayload  = 16
	atChunk    = 24
	atBlock    = 28
	atFlags    = 32
	atName     = 40
	atIdentity = atName + sha256.Size
	atKey      = atIdentity + sha256.Size
	atParent   = atKey + sha256.Size
	atStore    = atParent + sha256.Size
	atModel    = atStore + maxText
	atTokens   = atModel + maxText
	atSums     = atTokens + 4*kvcache.BlockTokens
)

// Flags of the header.
const (
	flagPublic = 1 << iota
	flagPortable
	flagImported
)

// pageBytes is the alignment of reads that bypass the page cache.
const pageBytes = 4096

// header is the first page of a file.
type header struct {
	Info
	payload int64
	chunk   int      // bytes that each checksum covers, a multiple of pageBytes
	sums    []uint32 // CRC-32C of the chunks
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged reports a file that is not the object that its name promises.
var errDamaged = errors.New("the file is damaged")

// chunkBytes returns the size of the chunks of a payload.
func chunkBytes(payload int64) int {
	const minimum = 256 << 10
	return int(max(minimum, pages((payload+maxChunks-1)/maxChunks)))
}

// pages rounds a size up to whole pages.
func pages(n int64) int64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

// check refuses an Info that a header cannot hold.
func (i *Info) check(payload int64) error {
	if len(i.Store) > maxText || len(i.Tokens) != kvcache.BlockTokens || i.Block < 0 || payload < 1 ||
		payload > 1<<40 {
		return fmt.Errorf("a block of %d bytes and %d tokens cannot be stored", payload, len(i.Tokens))
	}
	return nil
}

// encode writes the header to a page.
func (h *header) encode(page []byte) {
	clear(page)
	le := binary.LittleEndian
	copy(page, magic)
	le.PutUint32(page[atVersion:], version)
	le.PutUint64(page[atPayload:], uint64(h.payload))
	le.PutUint32(page[atChunk:], uint32(h.chunk))
	le.PutUint32(page[atBlock:], uint32(h.Block))
	flags := uint32(0)
	for bit, set := range map[uint32]bool{flagPublic: h.Public, flagPortable: h.Portable, flagImported: h.Imported} {
		if set {
			flags |= bit
		}
	}
	le.PutUint32(page[atFlags:], flags)
	name := h.Name()
	copy(page[atName:], name[:])
	copy(page[atIdentity:], h.Identity[:])
	copy(page[atKey:], h.Key[:])
	copy(page[atParent:], h.Parent[:])
	copy(page[atStore:atModel], h.Store)
	copy(page[atModel:atTokens], h.Model)
	for i, t := range h.Tokens {
		le.PutUint32(page[atTokens+4*i:], uint32(t))
	}
	for i, sum := range h.sums {
		le.PutUint32(page[atSums+4*i:], sum)
	}
	le.PutUint32(page[atSum:], crc32.Checksum(page, castagnoli))
}

// decode reads a header and checks it against the name of its file. page is overwritten.
func (h *header) decode(page []byte, name Name) error {
	le := binary.LittleEndian
	if string(page[:len(magic)]) != magic {
		return fmt.Errorf("%w: it has no header", errDamaged)
	}
	if v := le.Uint32(page[atVersion:]); v != version {
		return fmt.Errorf("%w: it has format %d, and this build reads %d", errDamaged, v, version)
	}
	sum := le.Uint32(page[atSum:])
	le.PutUint32(page[atSum:], 0)
	if crc32.Checksum(page, castagnoli) != sum {
		return fmt.Errorf("%w: its header has another checksum", errDamaged)
	}
	text := func(from, to int) string { return string(bytes.TrimRight(page[from:to], "\x00")) }
	flags := le.Uint32(page[atFlags:])
	*h = header{payload: int64(le.Uint64(page[atPayload:])), chunk: int(le.Uint32(page[atChunk:])),
		sums: h.sums[:0], Info: Info{
			Model: text(atModel, atTokens), Store: text(atStore, atModel), Block: int(le.Uint32(page[atBlock:])),
			Identity: [sha256.Size]byte(page[atIdentity:]), Key: kvcache.Key(page[atKey:]),
			Parent: kvcache.Key(page[atParent:]), Public: flags&flagPublic != 0,
			Portable: flags&flagPortable != 0, Imported: flags&flagImported != 0}}
	if h.payload < 1 || h.payload > 1<<40 || h.chunk != chunkBytes(h.payload) {
		return fmt.Errorf("%w: its sizes are impossible", errDamaged)
	}
	for i := range kvcache.BlockTokens {
		h.Tokens = append(h.Tokens, int32(le.Uint32(page[atTokens+4*i:])))
	}
	for i := range h.chunks() {
		h.sums = append(h.sums, le.Uint32(page[atSums+4*i:]))
	}
	if Name(page[atName:atIdentity]) != name || h.Name() != name {
		return fmt.Errorf("%w: it is the object of another name", errDamaged)
	}
	return nil
}

// chunks returns the number of chunks of the payload.
func (h *header) chunks() int { return int((h.payload + int64(h.chunk) - 1) / int64(h.chunk)) }

// size returns the size of the file.
func (h *header) size() int64 { return FileSize(h.payload) }

// FileSize returns the size of a file with a payload.
func FileSize(payload int64) int64 { return headerBytes + pages(payload) }
