#include "textflag.h"

// func call(entry uintptr, args unsafe.Pointer)
// The frame is what generated code may push on. It is framed and not NOSPLIT on purpose: the stack check in the prologue is
// where the scheduler gets hold of a goroutine that calls kernels in a loop. BP is saved and restored by the prologue.
TEXT ·call(SB), 0, $256-16
	MOVQ entry+0(FP), AX
	MOVQ args+8(FP), DI
	CALL AX
	RET
