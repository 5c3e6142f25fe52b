#include "textflag.h"

// func call(entry uintptr, args unsafe.Pointer)
// Generated code leaves R18 and R28 alone and may use R30 only to return; the frame saves R29 and R30.
TEXT ·call(SB), 0, $256-16
	MOVD entry+0(FP), R9
	MOVD args+8(FP), R0
	CALL (R9)
	RET

// func cleanRange(from, to unsafe.Pointer)
// Steps of 16 bytes are at most the smallest line CTR_EL0 can report.
TEXT ·cleanRange(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD to+8(FP), R1
	MOVD R0, R2
data:
	WORD $0xd50b7b22 // dc cvau, x2
	ADD  $16, R2
	CMP  R1, R2
	BLO  data
	WORD $0xd5033b9f // dsb ish
	MOVD R0, R2
code:
	WORD $0xd50b7522 // ic ivau, x2
	ADD  $16, R2
	CMP  R1, R2
	BLO  code
	WORD $0xd5033b9f // dsb ish
	WORD $0xd5033fdf // isb
	RET
