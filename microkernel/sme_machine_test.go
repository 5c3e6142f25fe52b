package microkernel

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"
	"unsafe"

	arm64gemm "sandwich/microkernel/internal/arm64/gemm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// smeMachine runs kernels of outer products on a CPU without SME: it decodes their machine code and
// executes it as the manual specifies (Arm ARM DDI 0487, and its supplement for SME, DDI 0616),
// with streaming vectors of any length. Of Advanced SIMD it supports loads only, and of memory only
// the operands: an unknown instruction, or an access outside an operand, ends the test.
type smeMachine struct {
	t      testing.TB
	length int // of vectors, in bytes
	code   map[jit.Func][]smeInstruction
	memory []smeMemory

	x              [32]uint64 // x31 is zero
	n, zero, carry bool       // flags
	z              [32][]byte
	p              [16][]bool // by byte
	za             [][]byte   // rows of the array
	streaming      bool
	pc             int
	done           bool
	now            []smeInstruction // the function that runs
	outer          int              // outer products that were made
}

// smeMemory is an operand.
type smeMemory struct {
	name     string
	at       uint64
	bytes    []byte
	writable bool
}

// smeInstruction is an instruction word and its action; nil: unsupported.
type smeInstruction struct {
	word uint32
	run  func(m *smeMachine, w uint32)
}

// smeOp is the words that equal bits under a mask.
type smeOp struct {
	mask, bits uint32
	run        func(m *smeMachine, w uint32)
}

// maxSMESteps ends a kernel that does not.
const maxSMESteps = 1 << 26

// fault ends the test.
func (m *smeMachine) fault(format string, args ...any) {
	m.t.Helper()
	word := uint32(0)
	if m.pc >= 0 && m.pc < len(m.now) {
		word = m.now[m.pc].word
	}
	m.t.Fatalf("offset %d of the code, %08x: %s", 4*m.pc, word, fmt.Sprintf(format, args...))
}

// bytes is n bytes at an address, all of one operand.
func (m *smeMachine) bytes(at uint64, n int, write bool) []byte {
	m.t.Helper()
	for _, o := range m.memory {
		if at >= o.at && at+uint64(n) <= o.at+uint64(len(o.bytes)) && (o.writable || !write) {
			return o.bytes[at-o.at:][:n]
		}
	}
	for _, o := range m.memory {
		if at+4096 >= o.at && at < o.at+uint64(len(o.bytes))+4096 {
			m.fault("%d bytes at offset %d of %s, which has %d", n, int64(at-o.at), o.name, len(o.bytes))
		}
	}
	m.fault("%d bytes at %#x, far from every operand", n, at)
	return nil
}

// own makes memory an operand.
func (m *smeMachine) own(name string, b []byte, writable bool) {
	m.memory = append(m.memory, smeMemory{name, uint64(uintptr(unsafe.Pointer(&b[0]))), b, writable})
}

// owning runs f while the machine owns arguments.
func owning[T any](m *smeMachine, args *T, f func()) {
	m.own("the arguments", unsafe.Slice((*byte)(unsafe.Pointer(args)), unsafe.Sizeof(*args)), true)
	f()
	m.memory = m.memory[:len(m.memory)-1]
}

// call runs a function on its arguments, which the machine owns.
func (m *smeMachine) call(code []smeInstruction, args unsafe.Pointer) {
	m.t.Helper()
	m.x[0] = uint64(uintptr(args))
	m.now, m.pc, m.done = code, 0, false
	for range maxSMESteps {
		if m.pc < 0 || m.pc >= len(code) || code[m.pc].run == nil {
			m.fault("no instruction that this machine knows")
		}
		i := code[m.pc]
		i.run(m, i.word)
		m.x[31] = 0
		if m.done {
			if m.streaming {
				m.fault("returned in streaming mode")
			}
			return
		}
		m.pc++
	}
	m.fault("the kernel has not ended after %d instructions", maxSMESteps)
}

// load decodes the code of a kernel and returns what Kernel.Run would be. Executable memory only
// names the functions.
func (m *smeMachine) load(s Spec, assemble func(Spec) ([]byte, error)) (run func(*GemmArgs)) {
	m.t.Helper()
	var codes [][]byte
	if err := s.EachTile(func(tile Spec) error {
		code, err := assemble(tile)
		codes = append(codes, code)
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	tiles := kernel.NewTiles(s)
	if s.Compute == ComputeInt8K {
		unpack, err := arm64gemm.PlaneMaker(s.B)
		if err != nil {
			m.t.Fatal(err)
		}
		codes = append(codes, unpack)
	}
	var err error
	if tiles.Funcs, err = jit.Load(codes...); err != nil {
		m.t.Skipf("the system forbids executable memory: %v", err)
	}
	m.code = map[jit.Func][]smeInstruction{}
	for i, c := range codes {
		m.code[tiles.Funcs[i]] = smeDecode(c)
	}
	if s.Compute == ComputeInt8K {
		args := new(arm64gemm.PlanesArgs)
		return func(g *GemmArgs) {
			owning(m, args, func() {
				args.Run(&tiles, *g, tiles.Funcs[len(codes)-1], func(f jit.Func, args unsafe.Pointer) {
					m.call(m.code[f], args)
				})
			})
		}
	}
	return func(g *GemmArgs) {
		panels := (g.N + PanelWidth - 1) / PanelWidth
		t := new(kernel.TileArgs)
		*t = tiles.Args(g, g.N-(panels-1)*PanelWidth)
		for _, higher := range [...]bool{true, false} {
			if f := tiles.RowTiles(t, g, panels, higher); f.Valid() {
				owning(m, t, func() { m.call(m.code[f], unsafe.Pointer(t)) })
			}
		}
	}
}

func smeDecode(code []byte) (out []smeInstruction) {
	for ; len(code) >= 4; code = code[4:] {
		i := smeInstruction{word: binary.LittleEndian.Uint32(code)}
		for _, ops := range [][]smeOp{smeScalar, smeVector, smeArray} {
			for _, o := range ops {
				if i.word&o.mask == o.bits {
					i.run = o.run
				}
			}
		}
		out = append(out, i)
	}
	return out
}

// smeField is n bits of a word from one on.
func smeField(w uint32, at, n int) int { return int(w >> at & (1<<n - 1)) }

// smeSigned is smeField with a sign.
func smeSigned(w uint32, at, n int) int { return int(int32(w<<(32-at-n)) >> (32 - n)) }

// xd, xn and xm are general registers in their usual places.
func (m *smeMachine) xd(w uint32) *uint64 { return &m.x[w&31] }
func (m *smeMachine) xn(w uint32) uint64  { return m.x[w>>5&31] }
func (m *smeMachine) xm(w uint32) uint64  { return m.x[w>>16&31] }

// immediate is the number of an addition.
func immediate(w uint32) uint64 { return uint64(smeField(w, 10, 12)) << (12 * smeField(w, 22, 1)) }

// smeScalar is the scalar instructions. Those with an immediate take register 31 for the stack
// pointer, which kernels have no business with.
var smeScalar = []smeOp{
	{0xFFFFFFFF, 0xD503201F, func(*smeMachine, uint32) {}}, // nop
	{0xFFC00000, 0xF9800000, func(*smeMachine, uint32) {}}, // prfm
	{0xFFFFFFFF, 0xD65F03C0, func(m *smeMachine, _ uint32) { m.done = true }},
	{0xFF800000, 0x91000000, func(m *smeMachine, w uint32) { *m.xd(w) = m.xn(w) + immediate(w) }},
	{0xFF800000, 0xD1000000, func(m *smeMachine, w uint32) { *m.xd(w) = m.xn(w) - immediate(w) }},
	{0xFF800000, 0xF1000000, func(m *smeMachine, w uint32) { // subs
		a, b := m.xn(w), immediate(w)
		m.n, m.zero, m.carry = int64(a-b) < 0, a == b, a >= b
		*m.xd(w) = a - b
	}},
	{0xFFE00000, 0x8B000000, func(m *smeMachine, w uint32) { *m.xd(w) = m.xn(w) + m.xm(w)<<smeField(w, 10, 6) }},
	{0xFFE0FC00, 0xCB000000, func(m *smeMachine, w uint32) { *m.xd(w) = m.xn(w) - m.xm(w) }},
	{0xFFE0FC00, 0xAA000000, func(m *smeMachine, w uint32) { *m.xd(w) = m.xn(w) | m.xm(w) }},
	{0xFFC00000, 0xD3400000, func(m *smeMachine, w uint32) { // ubfm: shifts
		r, s := smeField(w, 16, 6), smeField(w, 10, 6)
		if s >= r {
			*m.xd(w) = m.xn(w) >> r & (1<<(s-r+1) - 1)
			return
		}
		*m.xd(w) = m.xn(w) & (1<<(s+1) - 1) << (64 - r)
	}},
	{0xFF800000, 0xD2800000, func(m *smeMachine, w uint32) { // movz
		*m.xd(w) = uint64(smeField(w, 5, 16)) << (16 * smeField(w, 21, 2))
	}},
	{0xFFC00000, 0xF9400000, func(m *smeMachine, w uint32) { // ldr
		*m.xd(w) = binary.LittleEndian.Uint64(m.bytes(m.xn(w)+8*uint64(smeField(w, 10, 12)), 8, false))
	}},
	{0xFFC00000, 0xF9000000, func(m *smeMachine, w uint32) { // str
		binary.LittleEndian.PutUint64(m.bytes(m.xn(w)+8*uint64(smeField(w, 10, 12)), 8, true), *m.xd(w))
	}},
	{0xFC000000, 0x14000000, func(m *smeMachine, w uint32) { m.pc += smeSigned(w, 0, 26) - 1 }},
	{0xFF000000, 0xB4000000, func(m *smeMachine, w uint32) { // cbz
		if *m.xd(w) == 0 {
			m.pc += smeSigned(w, 5, 19) - 1
		}
	}},
	{0xFF000010, 0x54000000, func(m *smeMachine, w uint32) { // b.cond
		if m.holds(smeField(w, 0, 4)) {
			m.pc += smeSigned(w, 5, 19) - 1
		}
	}},
	{0xFFFFFFFF, 0xD503477F, func(m *smeMachine, _ uint32) { m.start() }},
	{0xFFFFFFFF, 0xD503467F, func(m *smeMachine, _ uint32) { m.streaming = false }},
}

// holds says whether the condition of a branch does.
func (m *smeMachine) holds(condition int) bool {
	var holds bool
	switch condition >> 1 {
	case 0:
		holds = m.zero
	case 1:
		holds = m.carry
	case 2:
		holds = m.n
	default:
		m.fault("condition %d", condition)
	}
	return holds == (condition&1 == 0)
}

// start enters streaming mode, which clears all registers.
func (m *smeMachine) start() {
	m.streaming = true
	for i := range m.z {
		m.z[i] = make([]byte, m.length)
	}
	for i := range m.p {
		m.p[i] = make([]bool, m.length)
	}
	m.za = make([][]byte, m.length)
	for i := range m.za {
		m.za[i] = make([]byte, m.length)
	}
}

// elements visits the elements of the given bytes that a predicate has, by their offset.
func (m *smeMachine) elements(p []bool, size int, visit func(at int)) {
	if !m.streaming {
		m.fault("no streaming mode")
	}
	for at := 0; at < m.length; at += size {
		if p == nil || p[at] {
			visit(at)
		}
	}
}

// while sets a predicate to the elements of which numbers from n on are below m, and the flags.
func (m *smeMachine) while(w uint32, size int) {
	p, from, to := m.p[w&15], m.xn(w), m.xm(w)
	clear(p)
	any, last := false, false
	m.elements(nil, size, func(at int) {
		p[at] = from+uint64(at/size) < to
		any, last = any || p[at], p[at]
	})
	m.n, m.zero, m.carry = p[0], !any, !last
}

// highest is the number of the highest bit that is set.
func highest(v int) int { return bits.Len(uint(v)) - 1 }
