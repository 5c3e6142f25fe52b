package microkernel

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	amd64gemm "sandwich/microkernel/internal/amd64/gemm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// tileMachine runs kernels of Dot AMX on a CPU without AMX. It replaces each tile instruction in
// the machine code by a call of five bytes, the length of the shortest one. The called code saves
// all registers and returns to Go, which decodes the original instruction, executes it as the
// manual specifies (Intel SDM volume 2, the instructions; volume 1, 18.2), faults included, and
// resumes the kernel after it.
type tileMachine struct {
	t       testing.TB
	resume  jit.Func
	sites   []tileSite
	config  [64]byte // of the last ldtilecfg; palette 0: none
	tiles   [8][16][64]byte
	release int // tilereleases that have been run
}

// tileSite is a tile instruction of a kernel.
type tileSite struct {
	code []byte
	text string // what the assembler calls it
}

// tileState holds the arguments of the kernel, and its registers while Go executes a tile
// instruction. It is not on a stack, which could grow and move meanwhile, because the generated
// code contains its address.
var tileState struct {
	args  *amd64gemm.AMXArgs
	spec  Spec
	reg   [16]uint64 // by number; the stack pointer and the frame pointer stay
	mask  [8]uint64
	vec   [32][64]byte
	flags uint64
	next  uint64 // address behind the call
	site  uint64 // number of the instruction, from 1; 0: the kernel has returned
}

// Offsets in tileState.
var (
	atReg   = func(i int) int { return int(unsafe.Offsetof(tileState.reg)) + 8*i }
	atMask  = func(i int) int { return int(unsafe.Offsetof(tileState.mask)) + 8*i }
	atVec   = func(i int) int { return int(unsafe.Offsetof(tileState.vec)) + 64*i }
	atFlags = int(unsafe.Offsetof(tileState.flags))
	atNext  = int(unsafe.Offsetof(tileState.next))
	atSite  = int(unsafe.Offsetof(tileState.site))
)

// savedRegs are the general registers that a kernel uses, except RAX.
var savedRegs = []asm.Reg{
	asm.RCX, asm.RDX, asm.RBX, asm.RSI, asm.RDI, asm.R8, asm.R9, asm.R10, asm.R11, asm.R12, asm.R13, asm.R14, asm.R15,
}

// pieces assembles code between bytes that the assembler has no instructions for.
func pieces(t testing.TB, parts ...any) (code []byte) {
	t.Helper()
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			code = append(code, p...)
		case func(a *asm.Asm):
			a := asm.New(asm.AVX512)
			p(a)
			c, err := a.Finish()
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, c...)
		}
	}
	return code
}

// leaveCode saves the registers and returns to Go. The stack holds the number of the instruction
// and the address after the call.
func leaveCode(t testing.TB) []byte {
	parts := []any{func(a *asm.Asm) {
		a.Push(asm.RAX)
		a.MovImm(asm.RAX, uint64(uintptr(unsafe.Pointer(&tileState))))
		for _, r := range savedRegs {
			a.Mov(asm.At(asm.RAX, atReg(int(r))), r)
		}
		for _, at := range []int{atReg(0), atSite, atNext} {
			a.Pop(asm.RCX)
			a.Mov(asm.At(asm.RAX, at), asm.RCX)
		}
	}, []byte{0x9C}, func(a *asm.Asm) { // pushfq
		a.Pop(asm.RCX)
		a.Mov(asm.At(asm.RAX, atFlags), asm.RCX)
		for i := range 32 {
			a.I(asm.VMOVUPS, asm.At(asm.RAX, atVec(i)), asm.Z(i))
		}
	}}
	for i := range 8 {
		parts = append(parts, []byte{0xC4, 0xE1, 0xFB, 0x93, 0xC8 | byte(i)}, // kmovq rcx, k
			func(a *asm.Asm) { a.Mov(asm.At(asm.RAX, atMask(i)), asm.RCX) })
	}
	return pieces(t, append(parts, func(a *asm.Asm) { a.VZeroUpper(); a.Ret() })...)
}

// resumeCode resumes the kernel after the call.
func resumeCode(t testing.TB) []byte {
	return pieces(t, func(a *asm.Asm) {
		a.Mov(asm.RAX, asm.RDI)
		for i := range 32 {
			a.I(asm.VMOVUPS, asm.Z(i), asm.At(asm.RAX, atVec(i)))
		}
		for i := range 8 {
			a.Mov(asm.RCX, asm.At(asm.RAX, atMask(i)))
			a.KMovQ(asm.Mask(i), asm.RCX)
		}
		a.Mov(asm.RCX, asm.At(asm.RAX, atNext))
		a.Push(asm.RCX)
		a.Mov(asm.RCX, asm.At(asm.RAX, atFlags))
		a.Push(asm.RCX)
	}, []byte{0x9D}, func(a *asm.Asm) { // popfq
		for _, r := range savedRegs {
			a.Mov(r, asm.At(asm.RAX, atReg(int(r))))
		}
		a.Mov(asm.RAX, asm.At(asm.RAX, atReg(0)))
		a.Ret()
	})
}

// kernel builds a kernel of Dot AMX as BuildAll does, with calls in place of its tile instructions.
func (m *tileMachine) kernel(s Spec) *Kernel {
	m.t.Helper()
	leave := leaveCode(m.t)
	codes := [][]byte{resumeCode(m.t)}
	at := map[Spec]int{}
	_ = s.EachTile(func(tile Spec) error {
		if code := tile.Code(); at[code] == 0 {
			at[code] = len(codes)
			codes = append(codes, m.patch(code, leave))
		}
		return nil
	})
	funcs, err := jit.Load(codes...)
	if err != nil {
		m.t.Skipf("the system forbids executable memory: %v", err)
	}
	m.resume = funcs[0]
	k := &Kernel{tiles: kernel.NewTiles(s), target: s.ISA.Target()}
	_ = s.EachTile(func(tile Spec) error {
		k.tiles.Funcs = append(k.tiles.Funcs, funcs[at[tile.Code()]])
		return nil
	})
	return k
}

// patch returns the machine code of a tile function with calls in place of its tile instructions.
func (m *tileMachine) patch(s Spec, leave []byte) []byte {
	m.t.Helper()
	type place struct{ from, to int }
	var places []place
	first := len(m.sites)
	a := asm.New(asm.AVX512)
	end := 0
	a.Trace(func(text string) {
		if strings.HasPrefix(text, "tile") || strings.HasPrefix(text, "tdp") || strings.HasPrefix(text, "ldtile") {
			places = append(places, place{end, a.Pos()})
			m.sites = append(m.sites, tileSite{text: text})
		}
		end = a.Pos()
	})
	amd64gemm.EmitAMX(a, s)
	code, err := a.Finish()
	if err != nil {
		m.t.Fatal(err)
	}
	call := func(at int, opcode byte, to int) { // or jump
		code[at] = opcode
		binary.LittleEndian.PutUint32(code[at+1:], uint32(to-at-5))
	}
	out := len(code)
	code = append(code, leave...)
	for i, p := range places {
		for code[p.from] != 0xC4 || code[p.from+1]&31 != 2 || p.from+tileLength(code[p.from:]) != p.to {
			p.from++ // a jump, or padding before the head of a loop, neither of which is listed
		}
		site := &m.sites[first+i]
		site.code = append(site.code, code[p.from:p.to]...)
		for j := p.from; j < p.to; j++ {
			code[j] = 0x90
		}
		call(p.from, 0xE8, len(code))
		code = append(code, 0x68) // push the number of the site
		code = binary.LittleEndian.AppendUint32(code, uint32(first+i+1))
		code = append(code, make([]byte, 5)...)
		call(len(code)-5, 0xE9, out)
	}
	return code
}

// tileLength returns the length of a tile instruction.
func tileLength(b []byte) int {
	modrm := b[4]
	n := 5
	if modrm>>6 < 3 && modrm&7 == 4 {
		n++ // SIB
	}
	switch {
	case modrm>>6 == 1:
		n++
	case modrm>>6 == 2, modrm&0xC7 == 5:
		n += 4
	}
	return n
}

// run returns the replacement of Kernel.Run.
func (m *tileMachine) run(k *Kernel) func(g *GemmArgs) {
	return func(g *GemmArgs) {
		if tileState.args == nil || tileState.spec != k.Spec() {
			tileState.args, tileState.spec = amd64gemm.NewAMXArgs(k.Spec()), k.Spec()
		}
		args := tileState.args
		args.Run(&k.tiles, g, func(f jit.Func, args unsafe.Pointer) {
			tileState.site = 0
			for f.Call(args); tileState.site != 0; m.resume.Call(unsafe.Pointer(&tileState)) {
				site := m.sites[tileState.site-1]
				if err := m.step(site); err != nil {
					m.t.Fatalf("%s: %s: %v", k.Spec(), site.text, err)
				}
				tileState.site = 0
			}
			if m.config[0] != 0 {
				m.t.Fatalf("%s returned without tilerelease", k.Spec())
			}
		})
	}
}

// size returns the rows of a tile and the bytes of a row.
func (m *tileMachine) size(t int) (rows, bytes int) {
	return int(m.config[48+t]), int(m.config[16+2*t])
}

// step executes one instruction: VEX of three bytes, opcode, ModRM and operands.
func (m *tileMachine) step(site tileSite) error {
	b := site.code
	pp, vvvv, opcode, modrm := b[2]&3, int(^b[2]>>3&15), b[3], b[4]
	if b[1]&31 != 2 || b[2]&0x84 != 0 {
		return fmt.Errorf("% x is no instruction of AMX", b)
	}
	register, reg, rm := modrm>>6 == 3, int(modrm>>3&7), int(modrm&7)
	switch key := [2]byte{opcode, pp}; {
	case key == [2]byte{0x49, 0} && !register:
		return m.configure(m.address(b, false))
	case key == [2]byte{0x49, 0} && modrm == 0xC0:
		m.config, m.tiles = [64]byte{}, [8][16][64]byte{}
		m.release++
		return nil
	case m.config[0] == 0:
		return fmt.Errorf("tiles are not configured")
	case key == [2]byte{0x49, 3} && register:
		m.tiles[reg] = [16][64]byte{}
		return m.used(reg)
	case key == [2]byte{0x4B, 3} && !register, key == [2]byte{0x4B, 2} && !register:
		if rm != 4 {
			return fmt.Errorf("no SIB byte")
		}
		return m.move(reg, m.address(b, true), pp == 3)
	case opcode == 0x5E && register:
		return m.dot(pp, reg, rm, vvvv)
	case key == [2]byte{0x5C, 2} && register:
		return m.dotBF16(reg, rm, vvvv)
	}
	return fmt.Errorf("% x is no instruction of AMX that is known here", b)
}

func (m *tileMachine) used(t int) error {
	if rows, bytes := m.size(t); rows == 0 || bytes == 0 {
		return fmt.Errorf("tile %d has no size", t)
	}
	return nil
}

// stridedAddress is a memory operand: the address of row r is base plus r times stride.
type stridedAddress struct{ base, stride uint64 }

// address decodes a memory operand. If rows is set, the index register holds the distance between
// rows.
func (m *tileMachine) address(b []byte, rows bool) (a stridedAddress) {
	high := func(bit uint) int { return int(^b[1]>>bit&1) << 3 }
	mod, rm, rest := b[4]>>6, int(b[4]&7), b[5:]
	// relative to the end of the instruction, the address after the call, moved by the padding
	if mod == 0 && rm == 5 {
		d := int32(binary.LittleEndian.Uint32(rest))
		return stridedAddress{base: tileState.next - 5 + uint64(len(b)) + uint64(int64(d))}
	}
	base := rm | high(5)
	if rm == 4 {
		sib := rest[0]
		rest = rest[1:]
		base = int(sib&7) | high(5)
		if index := int(sib>>3&7) | high(6); index != 4 {
			a.stride = tileState.reg[index] << (sib >> 6)
			if !rows {
				a.base = a.stride
			}
		}
	}
	a.base += tileState.reg[base]
	switch mod {
	case 1:
		a.base += uint64(int64(int8(rest[0])))
	case 2:
		a.base += uint64(int64(int32(binary.LittleEndian.Uint32(rest))))
	}
	return a
}

// memory is n bytes of the process. Inlined, it makes the compiler of Go 1.26 panic: a copy of
// known length from a number.
//
//go:noinline
func memory(address uint64, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(nil, uintptr(address))), n)
}

func (m *tileMachine) configure(a stridedAddress) error {
	copy(m.config[:], memory(a.base, 64))
	m.tiles = [8][16][64]byte{}
	if m.config[0] != 1 {
		return fmt.Errorf("palette %d", m.config[0])
	}
	for i, x := range m.config {
		if x != 0 && (i > 0 && i < 16 || i >= 32 && i < 48 || i >= 56) {
			return fmt.Errorf("byte %d of the configuration is %d", i, x)
		}
	}
	for t := range 8 {
		rows, bytes := m.size(t)
		if rows > 16 || bytes > 64 || (rows == 0) != (bytes == 0) || m.config[17+2*t] != 0 {
			return fmt.Errorf("tile %d has %d rows of %d bytes", t, rows, bytes)
		}
	}
	return nil
}

// move loads or stores a tile.
func (m *tileMachine) move(t int, a stridedAddress, load bool) error {
	rows, bytes := m.size(t)
	if load {
		m.tiles[t] = [16][64]byte{}
	}
	for r := range rows {
		row := memory(a.base+uint64(r)*a.stride, bytes)
		if load {
			copy(m.tiles[t][r][:], row)
		} else {
			copy(row, m.tiles[t][r][:])
		}
	}
	return m.used(t)
}
