#include "textflag.h"

// func cpuid(leaf uint32) (eax, ebx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL DX, edx+16(FP)
	RET

// func flushLines(p unsafe.Pointer, line, n uintptr, optimized bool)
// The frame makes the prologue check the stack, which lets the scheduler stop a goroutine that flushes in a loop.
TEXT ·flushLines(SB), 0, $16-25
	MOVQ p+0(FP), AX
	MOVQ line+8(FP), BX
	MOVQ n+16(FP), CX
	MOVBLZX optimized+24(FP), DX
	MFENCE
	TESTL DX, DX
	JZ   plain

optimized:
	CLFLUSHOPT (AX)
	ADDQ BX, AX
	DECQ CX
	JNZ  optimized
	MFENCE
	RET

plain:
	CLFLUSH (AX)
	ADDQ BX, AX
	DECQ CX
	JNZ  plain
	MFENCE
	RET
