package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// File is an open GGUF file. Its methods, except Close, may be called concurrently.
type File struct {
	keys    []string
	meta    map[string]value
	tensors []*Tensor
	byName  map[string]*Tensor
	parts   []*mapping // the mapped files; none for a file made by Parse
	path    string     // of the first part; empty for a file made by Parse
	size    int64      // bytes of all parts
	header  int        // bytes of the header

	unsupported error // of the first tensor whose type is not supported; nil for none
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type Type
	// Dims has one to four dimensions in ggml's order: the row length (K), the number of rows (N),
	// and outer dimensions without those of 1 at the end. A tensor with a dimension of 0 has no
	// data.
	Dims []int
	Data []byte // blocks of the rows in order; part of the file, read-only

	part *mapping // the mapped file with Data; nil for a file made by Parse
}

// Elems returns the number of elements.
func (t *Tensor) Elems() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Tensor returns the tensor with a name.
func (f *File) Tensor(name string) (t *Tensor, ok bool) {
	t, ok = f.byName[name]
	return t, ok
}

// Tensors returns all tensors in the order of the parts and of their headers.
func (f *File) Tensors() []*Tensor { return slices.Clone(f.tensors) }

// Path returns the path of the first part, or "" for a file made by Parse.
func (f *File) Path() string { return f.path }

// Size returns the size of all parts in bytes.
func (f *File) Size() int64 { return f.size }

// Parse parses a GGUF file in memory, such as an embedded model. Tensor data and metadata are
// slices of data, which must not change. The file need not be closed.
func Parse(data []byte) (*File, error) {
	f, err := parsePart(data, data)
	if err == nil {
		err = f.unsupported
	}
	if err != nil {
		return nil, err
	}
	if n, ok := f.Uint(keySplitCount); ok && n > 1 {
		return nil, fmt.Errorf("%w: it is one of %d parts; open the first part by its file name", ErrUnsupported, n)
	}
	return f, nil
}

const (
	magic            = "GGUF"
	keyAlignment     = "general.alignment"
	defaultAlignment = 32
	maxDims          = 4

	// Minimum number of bytes of a metadata entry (length of the key, key, value type, value) and
	// of a tensor entry (length of the name, name, number of dimensions, dimension, type, offset).
	minEntry  = 8 + 1 + 4 + 1
	minTensor = 8 + 1 + 4 + 8 + 4 + 8
)

// parsePart parses one part. header begins with the header of data and may be a copy.
func parsePart(header, data []byte) (*File, error) {
	c := &cursor{data: header}
	nTensors, nKeys := readPreamble(c)
	f := &File{meta: map[string]value{}, byName: map[string]*Tensor{}, size: int64(len(data))}
	f.readMetadata(c, nKeys)
	if c.err == nil && nTensors > c.remaining()/minTensor {
		c.fail(ErrDamaged, 8, "the file says it has %d tensors, more than its %d bytes can describe",
			nTensors, len(data))
	}
	alignment := f.alignment(c)
	infos := f.readTensorInfos(c, int(nTensors))
	if c.err != nil {
		return nil, c.err
	}
	f.header = c.pos
	if err := f.placeTensors(data, infos, alignment, c.pos); err != nil {
		return nil, err
	}
	return f, nil
}

// detectFormat returns the name of a format that users confuse with GGUF: JSON, such as
// config.json, or safetensors, which starts with the length of its JSON header. It returns "" for
// others.
func detectFormat(data []byte) string {
	switch {
	case len(data) > 0 && data[0] == '{':
		return "JSON"
	case len(data) > 9 && data[8] == '{' && strings.IndexByte(`" }`, data[9]) >= 0 &&
		binary.LittleEndian.Uint64(data) < uint64(len(data)):
		return "a safetensors file"
	}
	return ""
}

// readPreamble reads the magic number, the version and the two counts.
func readPreamble(c *cursor) (nTensors uint64, nKeys int) {
	if len(c.data) < 4 || !bytes.Equal(c.data[:4], []byte(magic)) {
		if kind := detectFormat(c.data); kind != "" {
			c.fail(ErrUnsupported, 0, "this is %s, and models are GGUF files; `sandwich tune` and "+
				"`sandwich tree` read the shapes of a Hugging Face config.json", kind)
			return 0, 0
		}
		if bytes.HasPrefix(c.data, []byte("version https://git-lfs")) {
			c.fail(ErrUnsupported, 0, "this is a pointer of Git LFS; fetch the model with `git lfs pull`")
			return 0, 0
		}
		c.fail(ErrDamaged, 0, "a GGUF file begins with %q, this one with %q", magic, c.data[:min(4, len(c.data))])
		return 0, 0
	}
	c.pos = 4
	switch version := c.u32("the version"); {
	case c.err != nil:
		return 0, 0
	case version == 2 || version == 3:
	case version&0xffff == 0:
		c.fail(ErrUnsupported, 4, "it is big-endian (version %d); convert it to little-endian",
			bits.ReverseBytes32(version))
		return 0, 0
	default:
		c.fail(ErrUnsupported, 4, "GGUF version %d; versions 2 and 3 are read, so convert the model again with "+
			"current tools", version)
		return 0, 0
	}
	nTensors = c.u64("the tensor count")
	nKeys = c.count("the number of metadata entries", minEntry)
	return nTensors, nKeys
}

// readMetadata reads n key-value pairs.
func (f *File) readMetadata(c *cursor, n int) {
	for i := range n {
		at := c.pos
		key := string(c.str(fmt.Sprintf("key %d of %d", i, n)))
		v := readValue(c, key)
		if c.err != nil {
			return
		}
		if _, twice := f.meta[key]; twice {
			c.fail(ErrDamaged, at, "key %s appears twice", show(key))
			return
		}
		f.meta[key] = v
		f.keys = append(f.keys, key)
	}
}

// alignment returns the alignment of tensor data, a power of two.
func (f *File) alignment(c *cursor) uint64 {
	v, ok := f.meta[keyAlignment]
	if !ok || c.err != nil {
		return defaultAlignment
	}
	if v.kind != kindU32 {
		c.fail(ErrDamaged, c.pos, "%s is a %s and must be a uint32", keyAlignment, v.kind)
		return defaultAlignment
	}
	a := uint64(binary.LittleEndian.Uint32(v.raw))
	if bits.OnesCount64(a) != 1 {
		c.fail(ErrDamaged, c.pos, "%s is %d and must be a power of two", keyAlignment, a)
	}
	return a
}

// tensorInfo is a tensor entry of the header. Offset and size were not compared with the size of
// the file.
type tensorInfo struct {
	tensor *Tensor
	offset uint64 // from the start of the data section
	bytes  uint64 // size of the data; 0 if unsupported
	at     int    // byte position of the entry, for messages

	unsupported error // nil if the type is supported
}

// readTensorInfos reads n tensor entries.
func (f *File) readTensorInfos(c *cursor, n int) []tensorInfo {
	var infos []tensorInfo
	for i := range n {
		at := c.pos
		name := string(c.str(fmt.Sprintf("the name of tensor %d of %d", i, n)))
		if c.err == nil && f.byName[name] != nil {
			c.fail(ErrDamaged, at, "tensor %s appears twice", show(name))
		}
		info := readTensorInfo(c, name, at)
		if c.err != nil {
			return nil
		}
		f.byName[name] = info.tensor
		f.tensors = append(f.tensors, info.tensor)
		infos = append(infos, info)
		if f.unsupported == nil {
			f.unsupported = info.unsupported
		}
	}
	return infos
}

// readTensorInfo reads the rest of the entry of a tensor after its name and computes the size of
// its data.
func readTensorInfo(c *cursor, name string, at int) tensorInfo {
	what := "the entry of tensor " + show(name)
	nDims := c.u32(what)
	if c.err == nil && (nDims == 0 || nDims > maxDims) {
		c.fail(ErrDamaged, at, "tensor %s has %d dimensions; 1 to %d are possible", show(name), nDims, maxDims)
	}
	if c.err != nil {
		return tensorInfo{}
	}
	var dims [maxDims]uint64
	for i := range dims[:nDims] {
		dims[i] = c.u64(what)
	}
	t := &Tensor{Name: name, Type: Type(c.u32(what))}
	info := tensorInfo{tensor: t, offset: c.u64(what), at: at}
	if c.err != nil {
		return info
	}
	elems, blockBytes := t.Type.Block()
	if elems == 0 {
		info.unsupported = fmt.Errorf("%w: at byte %d: tensor %s is of type %s, which is not supported; those that "+
			"are: %s", ErrUnsupported, at, show(name), strings.TrimPrefix(t.Type.String(), "type "),
			strings.Join(typeNames(), ", "))
		elems = 1
	}
	for nDims > 2 && dims[nDims-1] == 1 {
		nDims--
	}
	n, ok := product(dims[:nDims])
	if !ok || n > 1<<56 {
		c.fail(ErrDamaged, at, "tensor %s has impossible dimensions %d", show(name), dims[:nDims])
		return info
	}
	if dims[0]%uint64(elems) != 0 {
		c.fail(ErrDamaged, at, "tensor %s has rows of %d elements, which are no whole blocks of %d (type %s)",
			show(name), dims[0], elems, t.Type)
		return info
	}
	t.Dims = make([]int, nDims)
	for i := range t.Dims {
		t.Dims[i] = int(dims[i])
	}
	info.bytes = n / uint64(elems) * uint64(blockBytes) // below 2^59
	return info
}

// product returns the product of the dimensions. ok is false if the product of those that are not 0
// overflows.
func product(dims []uint64) (n uint64, ok bool) {
	n = 1
	for _, d := range dims {
		hi, lo := bits.Mul64(n, max(d, 1))
		if hi != 0 {
			return 0, false
		}
		n = lo
	}
	if slices.Contains(dims, 0) {
		return 0, true
	}
	return n, true
}

// placeTensors sets the data of each tensor. The data section starts at the first multiple of
// alignment after the header, whose length in bytes is header.
func (f *File) placeTensors(data []byte, infos []tensorInfo, alignment uint64, header int) error {
	base := (uint64(header) + alignment - 1) &^ (alignment - 1)
	end := uint64(len(data))
	for _, in := range infos {
		name := show(in.tensor.Name)
		if in.offset%alignment != 0 {
			return fmt.Errorf("%w: at byte %d: tensor %s begins at offset %d, which is not a multiple of the "+
				"alignment %d", ErrDamaged, in.at, name, in.offset, alignment)
		}
		if base > end || in.offset > end-base || in.bytes > end-base-in.offset {
			return fmt.Errorf("%w: at byte %d: tensor %s needs %d bytes at offset %d of the data section, which "+
				"begins at byte %d, but the file ends at byte %d; copy or download it again",
				ErrDamaged, in.at, name, in.bytes, in.offset, base, end)
		}
		lo, hi := base+in.offset, base+in.offset+in.bytes
		in.tensor.Data = data[lo:hi:hi]
	}
	return checkOverlap(infos)
}

// checkOverlap returns an error if two tensors share bytes. Otherwise the tensors of a small file
// could need any amount of memory once they are converted. It sorts infos by offset.
func checkOverlap(infos []tensorInfo) error {
	infos = slices.DeleteFunc(infos, func(in tensorInfo) bool { return in.bytes == 0 })
	slices.SortFunc(infos, func(a, b tensorInfo) int {
		if a.offset != b.offset {
			if a.offset < b.offset {
				return -1
			}
			return 1
		}
		return a.at - b.at
	})
	for i := 1; i < len(infos); i++ {
		if p, q := infos[i-1], infos[i]; q.offset-p.offset < p.bytes {
			return fmt.Errorf("%w: at byte %d: tensor %s overlaps tensor %s", ErrDamaged, q.at, show(q.tensor.Name),
				show(p.tensor.Name))
		}
	}
	return nil
}
