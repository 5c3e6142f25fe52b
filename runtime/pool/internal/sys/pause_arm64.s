#include "textflag.h"

// func Pause(n uint32)
// ISB, not YIELD: YIELD is a no-op on most cores, ISB gives the bus a rest of a few dozen cycles.
TEXT ·Pause(SB), NOSPLIT, $0-4
	MOVWU n+0(FP), R0
again:
	ISB  $15
	SUBW $1, R0, R0
	CBNZW R0, again
	RET
