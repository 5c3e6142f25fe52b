package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Writer writes a GGUF file of version 3 as a stream. Callers first set metadata and add tensors,
// in any order, and then Write the data of the tensors in the order in which they were added.
// Writer adds the padding. Equal calls give equal bytes. Close returns the first error.
//
//	w := gguf.NewWriter(file)
//	w.SetString("general.architecture", "llama")
//	w.AddTensor("output_norm.weight", gguf.F32, 2048)
//	w.Write(bytes) // as often as needed
//	err = w.Close() // flushes; the caller closes file
type Writer struct {
	out     *bufio.Writer
	keys    map[string]bool
	names   map[string]bool
	meta    []byte
	nMeta   uint64
	infos   []byte
	sizes   []uint64 // bytes of each tensor
	offset  uint64   // of the next tensor in the data section
	current int      // index of the tensor that Write continues
	written uint64   // bytes of that tensor
	begun   bool     // the header was written
	err     error
}

// NewWriter returns a Writer that streams to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, 1<<20), keys: map[string]bool{}, names: map[string]bool{}}
}

// fail records an error, unless one was recorded before.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// set adds one metadata entry of value type k; body is its encoding.
func (w *Writer) set(key string, k kind, body []byte) {
	switch {
	case w.begun:
		w.fail(fmt.Errorf("key %s is set after tensor data was written", show(key)))
	case w.keys[key]:
		w.fail(fmt.Errorf("key %s is set twice", show(key)))
	}
	w.keys[key] = true
	w.nMeta++
	w.meta = appendString(w.meta, key)
	w.meta = binary.LittleEndian.AppendUint32(w.meta, uint32(k))
	w.meta = append(w.meta, body...)
}

// appendString appends length and bytes of s.
func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// arrayHead encodes element kind and length of an array.
func arrayHead(elem kind, n int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(elem))
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

// Has reports whether a metadata key was set.
func (w *Writer) Has(key string) bool { return w.keys[key] }

// SetString sets a string.
func (w *Writer) SetString(key, v string) { w.set(key, kindString, appendString(nil, v)) }

// SetUint32 sets a uint32, the type of most sizes in GGUF.
func (w *Writer) SetUint32(key string, v uint32) {
	w.set(key, kindU32, binary.LittleEndian.AppendUint32(nil, v))
}

// setInt32 sets an int32.
func (w *Writer) setInt32(key string, v int32) {
	w.set(key, kindI32, binary.LittleEndian.AppendUint32(nil, uint32(v)))
}

// setUint64 sets a uint64.
func (w *Writer) setUint64(key string, v uint64) {
	w.set(key, kindU64, binary.LittleEndian.AppendUint64(nil, v))
}

// SetFloat32 sets a float32.
func (w *Writer) SetFloat32(key string, v float32) {
	w.set(key, kindF32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// SetBool sets a bool.
func (w *Writer) SetBool(key string, v bool) {
	b := []byte{0}
	if v {
		b[0] = 1
	}
	w.set(key, kindBool, b)
}

// SetStrings sets an array of strings.
func (w *Writer) SetStrings(key string, v []string) {
	b := arrayHead(kindString, len(v))
	for _, s := range v {
		b = appendString(b, s)
	}
	w.set(key, kindArray, b)
}

// SetFloats sets an array of float32.
func (w *Writer) SetFloats(key string, v []float32) {
	b := arrayHead(kindF32, len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	w.set(key, kindArray, b)
}

// SetInts sets an array of int32.
func (w *Writer) SetInts(key string, v []int32) {
	b := arrayHead(kindI32, len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	w.set(key, kindArray, b)
}

// AddTensor adds a tensor with dimensions in ggml's order, row length first.
func (w *Writer) AddTensor(name string, t Type, dims ...int) {
	elems, blockBytes := t.Block()
	switch {
	case w.begun:
		w.fail(fmt.Errorf("tensor %s is added after tensor data was written", show(name)))
		return
	case w.names[name]:
		w.fail(fmt.Errorf("tensor %s is added twice", show(name)))
		return
	case elems == 0:
		w.fail(fmt.Errorf("tensor %s: type %s is not supported", show(name), t))
		return
	case len(dims) == 0 || len(dims) > maxDims || dims[0]%elems != 0:
		w.fail(fmt.Errorf("tensor %s: dimensions %d do not fit type %s, whose blocks have %d elements", show(name),
			dims, t, elems))
		return
	}
	wide := make([]uint64, len(dims))
	for i, d := range dims {
		wide[i] = uint64(max(d, 0))
	}
	n, ok := product(wide)
	if !ok || n > 1<<56 {
		w.fail(fmt.Errorf("tensor %s: impossible dimensions %d", show(name), dims))
		return
	}
	w.names[name] = true
	w.infos = appendString(w.infos, name)
	w.infos = binary.LittleEndian.AppendUint32(w.infos, uint32(len(dims)))
	for _, d := range wide {
		w.infos = binary.LittleEndian.AppendUint64(w.infos, d)
	}
	w.infos = binary.LittleEndian.AppendUint32(w.infos, uint32(t))
	w.infos = binary.LittleEndian.AppendUint64(w.infos, w.offset)
	size := n / uint64(elems) * uint64(blockBytes)
	w.sizes = append(w.sizes, size)
	w.offset += size + padding(size)
}

// padding returns the number of bytes from n to the next multiple of the alignment.
func padding(n uint64) uint64 { return -n % defaultAlignment }

// begin writes the header.
func (w *Writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	head := []byte(magic)
	head = binary.LittleEndian.AppendUint32(head, 3)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(w.sizes)))
	head = binary.LittleEndian.AppendUint64(head, w.nMeta)
	w.emit(head)
	w.emit(w.meta)
	w.emit(w.infos)
	w.pad(uint64(len(head) + len(w.meta) + len(w.infos)))
}

// emit writes p, unless an error was recorded.
func (w *Writer) emit(p []byte) {
	if w.err == nil {
		_, err := w.out.Write(p)
		if err != nil {
			w.fail(err) // it names the operation and the file
		}
	}
}

// pad writes the zeros that follow n bytes.
func (w *Writer) pad(n uint64) {
	var zeros [defaultAlignment]byte
	w.emit(zeros[:padding(n)])
}

// Write appends tensor data: the bytes of all tensors one after the other, in the order of
// AddTensor, in pieces of any size.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin()
	done := 0
	for w.err == nil && done < len(p) {
		if w.current == len(w.sizes) {
			w.fail(errors.New("there is more tensor data than the added tensors have"))
			break
		}
		size := w.sizes[w.current]
		n := int(min(uint64(len(p)-done), size-w.written))
		w.emit(p[done : done+n])
		done += n
		w.written += uint64(n)
		if w.written == size {
			w.pad(size)
			w.current, w.written = w.current+1, 0
		}
	}
	return done, w.err
}

// Close writes the buffered bytes. It returns the first error of the Writer, also if tensor data is
// missing.
func (w *Writer) Close() error {
	w.begin()
	if w.err == nil && w.current < len(w.sizes) {
		w.fail(fmt.Errorf("data of %d of %d tensors is missing", len(w.sizes)-w.current, len(w.sizes)))
	}
	if w.err == nil {
		if err := w.out.Flush(); err != nil {
			w.fail(err)
		}
	}
	return w.err
}
