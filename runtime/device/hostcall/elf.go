package hostcall

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// tableSymbols are the C functions that the child stores in the header, in table order.
var tableSymbols = []string{"dlopen", "dlsym", "dlerror", "pthread_create"}

// processName is the name that ps and top show for the child: at most 15 bytes.
const processName = "sandwich-device"

// machine describes the executable's format for one architecture.
type machine struct {
	code      uint16 // e_machine
	globDat   uint64 // relocation type that stores a symbol's address
	registers int    // arguments passed in registers
	program   func(external map[string]int) (*assembler, error)
	bases     []uintptr // addresses to try for the shared memory
	loaders   []string  // usual paths of the dynamic loader
}

// machines lists the supported architectures by GOARCH. The addresses are outside the ranges that
// Go's heap, position-independent executables and libraries use; on arm64 they are within 39 bits.
var machines = map[string]machine{
	"amd64": {62, 6, 6, x86Program, bases(0x110000000000), []string{
		"/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"}},
	"arm64": {183, 1025, 8, a64Program, bases(0x6000000000), []string{
		"/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-aarch64.so.1"}},
}

// bases returns addresses 4 GiB apart.
func bases(first uintptr) []uintptr {
	all := make([]uintptr, 16)
	for i := range all {
		all[i] = first + uintptr(i)<<32
	}
	return all
}

// Sections of the file, by their offset. The writable segment is mapped writableShift higher, so
// that the segments do not share a page on systems with pages of up to 64 KiB.
const (
	headerBytes   = 64
	segmentBytes  = 56
	segments      = 6
	writableAt    = 0x1000
	writableShift = 0x10000
	gotAt         = writableAt
	dynamicAt     = writableAt + 64
	pageAlign     = 0x10000
)

// Executable returns the child's executable for an architecture (amd64 or arm64). interpreter is
// the path of the dynamic loader of the host's C library. Equal arguments give equal bytes.
func Executable(arch, interpreter string) ([]byte, error) {
	file, _, err := build(arch, interpreter)
	return file, err
}

// build returns the executable and a listing of its code.
func build(arch, interpreter string) (file []byte, listing string, err error) {
	m, ok := machines[arch]
	if !ok {
		return nil, "", fmt.Errorf("device drivers cannot be used on %s: only amd64 and arm64 are supported", arch)
	}
	e := &image{machine: m}
	e.layout(interpreter)
	external := map[string]int{"name": e.nameAt - e.textAt}
	for i, s := range e.symbols {
		external[s] = writableShift + gotAt + 8*i - e.textAt
	}
	text, err := m.program(external)
	if err != nil {
		return nil, "", err
	}
	if e.textAt+len(text.code) > writableAt {
		return nil, "", fmt.Errorf("%d bytes of code and the loader's path do not fit into a page", len(text.code))
	}
	e.write(interpreter, text)
	return e.file, text.print(e.textAt), nil
}

// image is an executable that is being written.
type image struct {
	machine
	symbols, needed           []string
	strings                   bytes.Buffer
	nameOf                    map[string]uint32 // offset in strings
	interpAt, stringsAt       int
	symbolsAt, hashAt, relaAt int
	nameAt, textAt            int
	file                      []byte
	segment                   int
}

// layout places the read-only sections.
func (e *image) layout(interpreter string) {
	e.symbols = append([]string{"__libc_start_main"}, tableSymbols...)
	e.needed = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"} // musl maps these to itself
	e.nameOf = map[string]uint32{}
	e.strings.WriteByte(0)
	for _, s := range append(append([]string{}, e.symbols...), e.needed...) {
		e.nameOf[s] = uint32(e.strings.Len())
		e.strings.WriteString(s + "\x00")
	}
	at := headerBytes + segments*segmentBytes
	place := func(n, align int) int {
		start := (at + align - 1) / align * align
		at = start + n
		return start
	}
	e.interpAt = place(len(interpreter)+1, 1)
	e.stringsAt = place(e.strings.Len(), 1)
	e.symbolsAt = place(24*(1+len(e.symbols)), 8)
	e.hashAt = place(4*(2+1+1+len(e.symbols)), 8)
	e.relaAt = place(24*len(e.symbols), 8)
	e.nameAt = place(16, 8)
	e.textAt = place(0, 16)
}

func (e *image) write(interpreter string, text *assembler) {
	le := binary.LittleEndian
	entries := e.dynamic()
	end := dynamicAt + 16*len(entries)
	readOnly := e.textAt + len(text.code)
	e.file = make([]byte, end)
	copy(e.file, "\x7fELF\x02\x01\x01")
	le.PutUint16(e.file[16:], 3) // ET_DYN
	le.PutUint16(e.file[18:], e.code)
	le.PutUint32(e.file[20:], 1)
	le.PutUint64(e.file[24:], uint64(e.textAt+text.labels["_start"]))
	le.PutUint64(e.file[32:], headerBytes)
	le.PutUint16(e.file[52:], headerBytes)
	le.PutUint16(e.file[54:], segmentBytes)
	le.PutUint16(e.file[56:], segments)
	le.PutUint16(e.file[58:], 64)
	e.program(6, 4, headerBytes, 0, segments*segmentBytes, 8)             // PT_PHDR
	e.program(3, 4, e.interpAt, 0, len(interpreter)+1, 1)                 // PT_INTERP
	e.program(1, 5, 0, 0, readOnly, pageAlign)                            // PT_LOAD, read and execute
	e.program(1, 6, writableAt, writableShift, end-writableAt, pageAlign) // PT_LOAD, read and write
	e.program(2, 6, dynamicAt, writableShift, 16*len(entries), 8)         // PT_DYNAMIC
	e.program(0x6474e551, 6, 0, 0, 0, 16)                                 // PT_GNU_STACK, not executable
	copy(e.file[e.interpAt:], interpreter)
	copy(e.file[e.stringsAt:], e.strings.Bytes())
	for i, s := range e.symbols {
		symbol := e.file[e.symbolsAt+24*(i+1):]
		le.PutUint32(symbol, e.nameOf[s])
		symbol[4] = 0x12 // global function
		relocation := e.file[e.relaAt+24*i:]
		le.PutUint64(relocation, uint64(writableShift+gotAt+8*i))
		le.PutUint64(relocation[8:], uint64(i+1)<<32|e.globDat)
	}
	le.PutUint32(e.file[e.hashAt:], 1)
	le.PutUint32(e.file[e.hashAt+4:], uint32(1+len(e.symbols)))
	copy(e.file[e.nameAt:], processName)
	copy(e.file[e.textAt:], text.code)
	for i, d := range entries {
		le.PutUint64(e.file[dynamicAt+16*i:], d[0])
		le.PutUint64(e.file[dynamicAt+16*i+8:], d[1])
	}
}

// dynamic returns the entries of the dynamic section: tag and value.
func (e *image) dynamic() [][2]uint64 {
	var entries [][2]uint64
	for _, s := range e.needed {
		entries = append(entries, [2]uint64{1, uint64(e.nameOf[s])}) // DT_NEEDED
	}
	return append(entries, [][2]uint64{
		{4, uint64(e.hashAt)},
		{5, uint64(e.stringsAt)},
		{6, uint64(e.symbolsAt)},
		{10, uint64(e.strings.Len())},
		{11, 24},
		{7, uint64(e.relaAt)},
		{8, uint64(24 * len(e.symbols))},
		{9, 24},
		{30, 8},         // DT_FLAGS: BIND_NOW
		{0x6ffffffb, 1}, // DT_FLAGS_1: NOW
		{0, 0},
	}...)
}

// program writes the next program header.
func (e *image) program(kind, flags uint32, offset, shift, size, align int) {
	le := binary.LittleEndian
	p := e.file[headerBytes+segmentBytes*e.segment:]
	e.segment++
	le.PutUint32(p, kind)
	le.PutUint32(p[4:], flags)
	le.PutUint64(p[8:], uint64(offset))
	le.PutUint64(p[16:], uint64(offset+shift))
	le.PutUint64(p[24:], uint64(offset+shift))
	le.PutUint64(p[32:], uint64(size))
	le.PutUint64(p[40:], uint64(size))
	le.PutUint64(p[48:], uint64(align))
}
