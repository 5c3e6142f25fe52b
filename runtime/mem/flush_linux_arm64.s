#include "textflag.h"

// func cacheType() uint64
TEXT ·cacheType(SB), NOSPLIT, $0-8
	MRS  CTR_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func flushLines(p unsafe.Pointer, line, n uintptr)
// The frame makes the prologue check the stack, which lets the scheduler stop a goroutine that flushes in a loop.
TEXT ·flushLines(SB), 0, $16-24
	MOVD p+0(FP), R0
	MOVD line+8(FP), R1
	MOVD n+16(FP), R2

again:
	DC   CIVAC, R0
	ADD  R1, R0
	SUBS $1, R2
	BNE  again
	DSB  $15 // the lines are gone before the next read
	RET
