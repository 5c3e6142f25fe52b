package hostcall

import (
	"encoding/binary"
	"errors"
)

// Linux system calls of amd64.
const (
	x86Close   = 3
	x86Mmap    = 9
	x86Pread   = 17
	x86Prctl   = 157
	x86Futex   = 202
	closeRange = 436      // amd64 and arm64
	mmapShared = 0x100001 // MAP_SHARED | MAP_FIXED_NOREPLACE
	setName    = 15       // PR_SET_NAME
)

// x86 emits amd64 code.
type x86 struct{ assembler }

func (x *x86) jump8(text string, op byte, label string) {
	x.emit(text+" "+label, op, 0)
	x.refer(label, 1, func(code []byte, at, target int) error {
		d := target - (at + 1)
		if d < -128 || d > 127 {
			return errors.New("too far for a short jump")
		}
		code[at] = byte(d)
		return nil
	})
}

// rel32 emits an instruction that ends with the distance to a label.
func (x *x86) rel32(text, label string, op ...byte) {
	x.emit(text, append(op, 0, 0, 0, 0)...)
	x.refer(label, 4, func(code []byte, at, target int) error {
		binary.LittleEndian.PutUint32(code[at:], uint32(int32(target-(at+4))))
		return nil
	})
}

func (x *x86) imm32(text string, v uint32, op ...byte) { x.emit(text, append(op, le32(v)...)...) }

// x86Program returns the child's code for amd64. Labels of external names hold offsets from the
// beginning of the code.
func x86Program(external map[string]int) (*assembler, error) {
	x := &x86{}
	x.labels = external
	x.serve()
	x.calls()
	x.main()
	x.start()
	return &x.assembler, x.link()
}

// serve emits serve(mailbox): it waits for requests until a record has no function.
func (x *x86) serve() {
	x.label("serve")
	x.emit("push rbp", 0x55)
	x.emit("push rbx", 0x53)
	x.emit("push r12", 0x41, 0x54)
	x.emit("push r13", 0x41, 0x55)
	x.emit("push r14", 0x41, 0x56)
	x.emit("push r15", 0x41, 0x57)
	x.emit("sub rsp, 8", 0x48, 0x83, 0xEC, 0x08)
	x.emit("mov rbx, rdi", 0x48, 0x89, 0xFB)
	x.emit("mov r12d, [rbx+done]", 0x44, 0x8B, 0x63, boxDone)
	x.label("wait")
	x.emit("mov eax, [rbx+request]", 0x8B, 0x03)
	x.emit("cmp eax, r12d", 0x44, 0x39, 0xE0)
	x.jump8("jne", 0x75, "work")
	x.imm32("mov eax, 1", 1, 0xB8)
	x.emit("xchg [rbx+serverSleeps], eax", 0x87, 0x43, boxServerSleeps)
	x.emit("mov eax, [rbx+request]", 0x8B, 0x03)
	x.emit("cmp eax, r12d", 0x44, 0x39, 0xE0)
	x.jump8("jne", 0x75, "awake")
	x.imm32("mov eax, futex", x86Futex, 0xB8)
	x.emit("mov rdi, rbx", 0x48, 0x89, 0xDF)
	x.emit("xor esi, esi", 0x31, 0xF6)
	x.emit("mov edx, r12d", 0x44, 0x89, 0xE2)
	x.emit("xor r10d, r10d", 0x45, 0x31, 0xD2)
	x.emit("syscall", 0x0F, 0x05)
	x.label("awake")
	x.imm32("mov dword [rbx+serverSleeps], 0", 0, 0xC7, 0x43, boxServerSleeps)
	x.jump8("jmp", 0xEB, "wait")
}

// calls emits the rest of serve: the calls of one request and the reply.
func (x *x86) calls() {
	x.label("work")
	x.emit("mov r12d, eax", 0x41, 0x89, 0xC4)
	x.emit("mov r13d, [rbx+count]", 0x44, 0x8B, 0x6B, boxCount)
	x.emit("lea r14, [rbx+records]", 0x4C, 0x8D, 0x73, boxRecords)
	x.label("next")
	x.emit("test r13d, r13d", 0x45, 0x85, 0xED)
	x.jump8("jz", 0x74, "reply")
	x.emit("mov r11, [r14+function]", 0x4D, 0x8B, 0x1E)
	x.emit("test r11, r11", 0x4D, 0x85, 0xDB)
	x.jump8("jz", 0x74, "exit")
	x.emit("mov ecx, [r14+stack]", 0x41, 0x8B, 0x4E, recordStack)
	x.emit("mov r15, rsp", 0x49, 0x89, 0xE7)
	x.emit("lea rdx, [r14+args+48]", 0x49, 0x8D, 0x56, recordArgs+48)
	x.label("push")
	x.emit("test ecx, ecx", 0x85, 0xC9)
	x.jump8("jz", 0x74, "call")
	x.emit("dec ecx", 0xFF, 0xC9)
	x.emit("push qword [rdx+rcx*8]", 0xFF, 0x34, 0xCA)
	x.jump8("jmp", 0xEB, "push")
	x.label("call")
	x.emit("mov rdi, [r14+args]", 0x49, 0x8B, 0x7E, recordArgs)
	x.emit("mov rsi, [r14+args+8]", 0x49, 0x8B, 0x76, recordArgs+8)
	x.emit("mov rdx, [r14+args+16]", 0x49, 0x8B, 0x56, recordArgs+16)
	x.emit("mov rcx, [r14+args+24]", 0x49, 0x8B, 0x4E, recordArgs+24)
	x.emit("mov r8, [r14+args+32]", 0x4D, 0x8B, 0x46, recordArgs+32)
	x.emit("mov r9, [r14+args+40]", 0x4D, 0x8B, 0x4E, recordArgs+40)
	x.emit("xor eax, eax", 0x31, 0xC0)
	x.emit("call r11", 0x41, 0xFF, 0xD3)
	x.emit("mov rsp, r15", 0x4C, 0x89, 0xFC)
	x.emit("mov [r14+result], rax", 0x49, 0x89, 0x46, recordResult)
	x.emit("cmp dword [r14+check], 0", 0x41, 0x83, 0x7E, recordCheck, 0x00)
	x.jump8("je", 0x74, "accept")
	x.emit("test eax, eax", 0x85, 0xC0)
	x.jump8("jnz", 0x75, "reply")
	x.label("accept")
	x.imm32("add r14, recordBytes", recordBytes, 0x49, 0x81, 0xC6)
	x.emit("dec r13d", 0x41, 0xFF, 0xCD)
	x.jump8("jmp", 0xEB, "next")
	x.label("reply")
	x.emit("mov [rbx+left], r13d", 0x44, 0x89, 0x6B, boxLeft)
	x.emit("mov eax, r12d", 0x44, 0x89, 0xE0)
	x.emit("xchg [rbx+done], eax", 0x87, 0x43, boxDone)
	x.emit("cmp dword [rbx+clientSleeps], 0", 0x83, 0x7B, boxClientSleeps, 0x00)
	x.rel32("je wait", "wait", 0x0F, 0x84)
	x.imm32("mov eax, futex", x86Futex, 0xB8)
	x.emit("lea rdi, [rbx+done]", 0x48, 0x8D, 0x7B, boxDone)
	x.imm32("mov esi, FUTEX_WAKE", 1, 0xBE)
	x.imm32("mov edx, 1", 1, 0xBA)
	x.emit("syscall", 0x0F, 0x05)
	x.rel32("jmp wait", "wait", 0xE9)
	x.label("exit")
	x.emit("xor eax, eax", 0x31, 0xC0)
	x.emit("add rsp, 8", 0x48, 0x83, 0xC4, 0x08)
	x.emit("pop r15", 0x41, 0x5F)
	x.emit("pop r14", 0x41, 0x5E)
	x.emit("pop r13", 0x41, 0x5D)
	x.emit("pop r12", 0x41, 0x5C)
	x.emit("pop rbx", 0x5B)
	x.emit("pop rbp", 0x5D)
	x.emit("ret", 0xC3)
}

// main emits main: it maps the memory of descriptor 3, stores the table and serves mailbox 0.
func (x *x86) main() {
	x.label("main")
	x.emit("push rbx", 0x53)
	x.emit("sub rsp, 16", 0x48, 0x83, 0xEC, 0x10)
	x.imm32("mov eax, prctl", x86Prctl, 0xB8)
	x.imm32("mov edi, PR_SET_NAME", setName, 0xBF)
	x.rel32("lea rsi, [rip+name]", "name", 0x48, 0x8D, 0x35)
	x.emit("syscall", 0x0F, 0x05)
	x.imm32("mov eax, pread64", x86Pread, 0xB8)
	x.imm32("mov edi, sharedFD", sharedFD, 0xBF)
	x.emit("mov rsi, rsp", 0x48, 0x89, 0xE6)
	x.imm32("mov edx, 16", 16, 0xBA)
	x.emit("xor r10d, r10d", 0x45, 0x31, 0xD2)
	x.emit("syscall", 0x0F, 0x05)
	x.emit("mov rbx, [rsp]", 0x48, 0x8B, 0x1C, 0x24)
	x.imm32("mov eax, mmap", x86Mmap, 0xB8)
	x.emit("mov rdi, rbx", 0x48, 0x89, 0xDF)
	x.emit("mov rsi, [rsp+8]", 0x48, 0x8B, 0x74, 0x24, 0x08)
	x.imm32("mov edx, PROT_READ|PROT_WRITE", 3, 0xBA)
	x.imm32("mov r10d, MAP_SHARED|MAP_FIXED_NOREPLACE", mmapShared, 0x41, 0xBA)
	x.imm32("mov r8d, sharedFD", sharedFD, 0x41, 0xB8)
	x.emit("xor r9d, r9d", 0x45, 0x31, 0xC9)
	x.emit("syscall", 0x0F, 0x05)
	x.emit("cmp rax, rbx", 0x48, 0x39, 0xD8)
	x.jump8("je", 0x74, "mapped")
	x.imm32("mov eax, exitUnmapped", exitUnmapped, 0xB8)
	x.jump8("jmp", 0xEB, "leave")
	x.label("mapped")
	x.imm32("mov eax, close", x86Close, 0xB8)
	x.imm32("mov edi, sharedFD", sharedFD, 0xBF)
	x.emit("syscall", 0x0F, 0x05)
	x.imm32("mov eax, close_range", closeRange, 0xB8) // descriptors that the caller inherited
	x.imm32("mov edi, socketFD+1", socketFD+1, 0xBF)
	x.imm32("mov esi, 0xffffffff", 1<<32-1, 0xBE)
	x.emit("xor edx, edx", 0x31, 0xD2)
	x.emit("syscall", 0x0F, 0x05)
	for i, name := range tableSymbols {
		x.rel32("mov rax, [rip+"+name+"]", name, 0x48, 0x8B, 0x05)
		x.emit("mov [rbx+table."+name+"], rax", 0x48, 0x89, 0x43, byte(headerTable+8*i))
	}
	x.rel32("lea rax, [rip+serve]", "serve", 0x48, 0x8D, 0x05)
	x.emit("mov [rbx+table.serve], rax", 0x48, 0x89, 0x43, headerTable+8*tableServe)
	x.imm32("lea rdi, [rbx+boxes]", boxesAt, 0x48, 0x8D, 0xBB)
	x.rel32("call serve", "serve", 0xE8)
	x.label("leave")
	x.emit("add rsp, 16", 0x48, 0x83, 0xC4, 0x10)
	x.emit("pop rbx", 0x5B)
	x.emit("ret", 0xC3)
}

// start emits the entry point, which calls __libc_start_main as the C library's start code does.
func (x *x86) start() {
	x.label("_start")
	x.emit("xor ebp, ebp", 0x31, 0xED)
	x.emit("mov r9, rdx", 0x49, 0x89, 0xD1)
	x.emit("pop rsi", 0x5E)
	x.emit("mov rdx, rsp", 0x48, 0x89, 0xE2)
	x.emit("and rsp, -16", 0x48, 0x83, 0xE4, 0xF0)
	x.emit("push rax", 0x50)
	x.emit("push rsp", 0x54)
	x.emit("xor r8d, r8d", 0x45, 0x31, 0xC0)
	x.emit("xor ecx, ecx", 0x31, 0xC9)
	x.rel32("lea rdi, [rip+main]", "main", 0x48, 0x8D, 0x3D)
	x.rel32("call [rip+__libc_start_main]", "__libc_start_main", 0xFF, 0x15)
	x.emit("hlt", 0xF4)
}
