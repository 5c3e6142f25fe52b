package hostcall

import (
	"encoding/binary"
	"errors"
)

// Linux system calls of arm64.
const (
	a64Close = 57
	a64Pread = 67
	a64Futex = 98
	a64Prctl = 167
	a64Mmap  = 222
)

// a64 emits arm64 code.
type a64 struct{ assembler }

func (a *a64) ins(text string, word uint32) { a.emit(text, le32(word)...) }

// branch emits a PC-relative instruction whose distance in words is a field of bits bits at shift.
func (a *a64) branch(text string, word uint32, bits, shift int, label string) {
	a.ins(text+" "+label, word)
	a.refer(label, 4, func(code []byte, at, target int) error {
		d := (target - at) / 4
		if limit := 1 << (bits - 1); (target-at)%4 != 0 || d < -limit || d >= limit {
			return errors.New("out of range")
		}
		patch(code[at:], uint32(d)&(1<<bits-1)<<shift)
		return nil
	})
}

// adr emits ADR of register d.
func (a *a64) adr(d uint32, text, label string) {
	a.ins(text+" "+label, 0x10000000|d)
	a.refer(label, 4, func(code []byte, at, target int) error {
		distance := uint32(int32(target - at))
		patch(code[at:], distance&3<<29|distance>>2&0x7FFFF<<5)
		return nil
	})
}

func patch(code []byte, bits uint32) {
	binary.LittleEndian.PutUint32(code, binary.LittleEndian.Uint32(code)|bits)
}

// movz emits a move of 16 bits into a 64-bit register.
func (a *a64) movz(d, v uint32, text string) { a.ins(text, 0xD2800000|v<<5|d) }

// mov emits a copy of a 64-bit register.
func (a *a64) mov(d, n uint32, text string) { a.ins(text, 0xAA0003E0|n<<16|d) }

// load and store move a register to or from memory at a base register plus an offset.
func (a *a64) load64(t, n, offset uint32, text string)  { a.ins(text, 0xF9400000|offset/8<<10|n<<5|t) }
func (a *a64) store64(t, n, offset uint32, text string) { a.ins(text, 0xF9000000|offset/8<<10|n<<5|t) }
func (a *a64) load32(t, n, offset uint32, text string)  { a.ins(text, 0xB9400000|offset/4<<10|n<<5|t) }
func (a *a64) store32(t, n, offset uint32, text string) { a.ins(text, 0xB9000000|offset/4<<10|n<<5|t) }

// pair emits STP (0xA9000000) or LDP (0xA9400000) of two registers.
func (a *a64) pair(op, t, u, n, offset uint32, text string) {
	a.ins(text, op|offset/8&0x7F<<15|u<<10|n<<5|t)
}

func (a *a64) syscall(number uint32, name string) {
	a.movz(8, number, "mov x8, "+name)
	a.ins("svc 0", 0xD4000001)
}

const (
	a64STP, a64LDP  = 0xA9000000, 0xA9400000
	a64SP           = 31
	a64ZR           = 31
	a64NE           = 1
	a64HS           = 2
	a64Cond         = 0x54000000
	a64CBZ, a64CBNZ = 0x34000000, 0x35000000
	a64Wide         = 0x80000000 // the 64-bit form of CBZ
)

// a64Program returns the child's code for arm64, as x86Program does for amd64.
func a64Program(external map[string]int) (*assembler, error) {
	a := &a64{}
	a.labels = external
	a.serve()
	a.calls()
	a.main()
	a.start()
	return &a.assembler, a.link()
}

func (a *a64) serve() {
	a.label("serve")
	a.ins("stp x29, x30, [sp, -64]!", 0xA9BC7BFD)
	a.ins("mov x29, sp", 0x910003FD)
	a.pair(a64STP, 19, 20, a64SP, 16, "stp x19, x20, [sp, 16]")
	a.pair(a64STP, 21, 22, a64SP, 32, "stp x21, x22, [sp, 32]")
	a.store64(23, a64SP, 48, "str x23, [sp, 48]")
	a.mov(19, 0, "mov x19, x0")
	a.load32(20, 19, boxDone, "ldr w20, [x19, done]")
	a.label("wait")
	a.ins("ldar w0, [x19]", 0x88DFFE60)
	a.ins("cmp w0, w20", 0x6B14001F)
	a.branch("b.ne", a64Cond|a64NE, 19, 5, "work")
	a.movz(0, 1, "mov x0, 1")
	a.store32(0, 19, boxServerSleeps, "str w0, [x19, serverSleeps]")
	a.ins("dmb ish", 0xD5033BBF)
	a.ins("ldar w0, [x19]", 0x88DFFE60)
	a.ins("cmp w0, w20", 0x6B14001F)
	a.branch("b.ne", a64Cond|a64NE, 19, 5, "awake")
	a.mov(0, 19, "mov x0, x19")
	a.movz(1, 0, "mov x1, FUTEX_WAIT")
	a.mov(2, 20, "mov x2, x20")
	a.movz(3, 0, "mov x3, 0")
	a.syscall(a64Futex, "futex")
	a.label("awake")
	a.store32(a64ZR, 19, boxServerSleeps, "str wzr, [x19, serverSleeps]")
	a.branch("b", 0x14000000, 26, 0, "wait")
}

func (a *a64) calls() {
	a.label("work")
	a.mov(20, 0, "mov x20, x0")
	a.load32(21, 19, boxCount, "ldr w21, [x19, count]")
	a.ins("add x22, x19, records", 0x91000000|boxRecords<<10|19<<5|22)
	a.label("next")
	a.branch("cbz w21,", a64CBZ|21, 19, 5, "reply")
	a.load64(9, 22, recordFunction, "ldr x9, [x22, function]")
	a.branch("cbz x9,", a64Wide|a64CBZ|9, 19, 5, "exit")
	a.load32(10, 22, recordStack, "ldr w10, [x22, stack]")
	a.ins("mov x23, sp", 0x910003F7)
	a.ins("add x11, x22, args+64", 0x91000000|(recordArgs+64)<<10|22<<5|11)
	a.ins("sub sp, sp, x10, lsl 3", 0xCB206C00|10<<16|a64SP<<5|a64SP)
	a.movz(12, 0, "mov x12, 0")
	a.label("push")
	a.ins("cmp x12, x10", 0xEB0A019F)
	a.branch("b.hs", a64Cond|a64HS, 19, 5, "call")
	a.ins("ldr x13, [x11, x12, lsl 3]", 0xF8607800|12<<16|11<<5|13)
	a.ins("str x13, [sp, x12, lsl 3]", 0xF8207800|12<<16|a64SP<<5|13)
	a.ins("add x12, x12, 1", 0x9100058C)
	a.branch("b", 0x14000000, 26, 0, "push")
	a.label("call")
	a.pair(a64LDP, 0, 1, 22, recordArgs, "ldp x0, x1, [x22, args]")
	a.pair(a64LDP, 2, 3, 22, recordArgs+16, "ldp x2, x3, [x22, args+16]")
	a.pair(a64LDP, 4, 5, 22, recordArgs+32, "ldp x4, x5, [x22, args+32]")
	a.pair(a64LDP, 6, 7, 22, recordArgs+48, "ldp x6, x7, [x22, args+48]")
	a.ins("blr x9", 0xD63F0120)
	a.ins("mov sp, x23", 0x910002FF)
	a.store64(0, 22, recordResult, "str x0, [x22, result]")
	a.load32(10, 22, recordCheck, "ldr w10, [x22, check]")
	a.branch("cbz w10,", a64CBZ|10, 19, 5, "accept")
	a.branch("cbnz w0,", a64CBNZ, 19, 5, "reply")
	a.label("accept")
	a.ins("add x22, x22, recordBytes", 0x91000000|recordBytes<<10|22<<5|22)
	a.ins("sub w21, w21, 1", 0x510006B5)
	a.branch("b", 0x14000000, 26, 0, "next")
	a.label("reply")
	a.store32(21, 19, boxLeft, "str w21, [x19, left]")
	a.ins("add x9, x19, done", 0x91000000|boxDone<<10|19<<5|9)
	a.ins("stlr w20, [x9]", 0x889FFD34)
	a.ins("dmb ish", 0xD5033BBF)
	a.load32(10, 19, boxClientSleeps, "ldr w10, [x19, clientSleeps]")
	a.branch("cbz w10,", a64CBZ|10, 19, 5, "wait")
	a.mov(0, 9, "mov x0, x9")
	a.movz(1, 1, "mov x1, FUTEX_WAKE")
	a.movz(2, 1, "mov x2, 1")
	a.syscall(a64Futex, "futex")
	a.branch("b", 0x14000000, 26, 0, "wait")
	a.label("exit")
	a.movz(0, 0, "mov x0, 0")
	a.load64(23, a64SP, 48, "ldr x23, [sp, 48]")
	a.pair(a64LDP, 21, 22, a64SP, 32, "ldp x21, x22, [sp, 32]")
	a.pair(a64LDP, 19, 20, a64SP, 16, "ldp x19, x20, [sp, 16]")
	a.ins("ldp x29, x30, [sp], 64", 0xA8C47BFD)
	a.ins("ret", 0xD65F03C0)
}

func (a *a64) main() {
	a.label("main")
	a.ins("stp x29, x30, [sp, -48]!", 0xA9BD7BFD)
	a.ins("mov x29, sp", 0x910003FD)
	a.store64(19, a64SP, 16, "str x19, [sp, 16]")
	a.movz(0, setName, "mov x0, PR_SET_NAME")
	a.adr(1, "adr x1,", "name")
	a.syscall(a64Prctl, "prctl")
	a.movz(0, sharedFD, "mov x0, sharedFD")
	a.ins("add x1, sp, 32", 0x91000000|32<<10|a64SP<<5|1)
	a.movz(2, 16, "mov x2, 16")
	a.movz(3, 0, "mov x3, 0")
	a.syscall(a64Pread, "pread64")
	a.pair(a64LDP, 19, 1, a64SP, 32, "ldp x19, x1, [sp, 32]")
	a.mov(0, 19, "mov x0, x19")
	a.movz(2, 3, "mov x2, PROT_READ|PROT_WRITE")
	a.movz(3, mmapShared&0xFFFF, "mov x3, MAP_SHARED")
	a.ins("movk x3, MAP_FIXED_NOREPLACE>>16, lsl 16", 0xF2A00000|mmapShared>>16<<5|3)
	a.movz(4, sharedFD, "mov x4, sharedFD")
	a.movz(5, 0, "mov x5, 0")
	a.syscall(a64Mmap, "mmap")
	a.ins("cmp x0, x19", 0xEB13001F)
	a.movz(0, exitUnmapped, "mov x0, exitUnmapped")
	a.branch("b.ne", a64Cond|a64NE, 19, 5, "leave")
	a.movz(0, sharedFD, "mov x0, sharedFD")
	a.syscall(a64Close, "close")
	a.movz(0, socketFD+1, "mov x0, socketFD+1")
	a.ins("mov w1, -1", 0x12800001)
	a.movz(2, 0, "mov x2, 0")
	a.syscall(closeRange, "close_range")
	for i, name := range tableSymbols {
		a.branch("ldr x9,", 0x58000009, 19, 5, name)
		a.store64(9, 19, uint32(headerTable+8*i), "str x9, [x19, table."+name+"]")
	}
	a.adr(9, "adr x9,", "serve")
	a.store64(9, 19, headerTable+8*tableServe, "str x9, [x19, table.serve]")
	a.ins("add x0, x19, boxes", 0x91400000|boxesAt>>12<<10|19<<5)
	a.branch("bl", 0x94000000, 26, 0, "serve")
	a.label("leave")
	a.load64(19, a64SP, 16, "ldr x19, [sp, 16]")
	a.ins("ldp x29, x30, [sp], 48", 0xA8C37BFD)
	a.ins("ret", 0xD65F03C0)
}

func (a *a64) start() {
	a.label("_start")
	a.movz(29, 0, "mov x29, 0")
	a.movz(30, 0, "mov x30, 0")
	a.mov(5, 0, "mov x5, x0")
	a.load64(1, a64SP, 0, "ldr x1, [sp]")
	a.ins("add x2, sp, 8", 0x91000000|8<<10|a64SP<<5|2)
	a.adr(0, "adr x0,", "main")
	a.movz(3, 0, "mov x3, 0")
	a.movz(4, 0, "mov x4, 0")
	a.ins("mov x6, sp", 0x910003E6)
	a.branch("ldr x16,", 0x58000010, 19, 5, "__libc_start_main")
	a.ins("blr x16", 0xD63F0200)
	a.ins("brk 0", 0xD4200000)
}
