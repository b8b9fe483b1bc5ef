#include "textflag.h"

// func memoryEnd() uintptr
TEXT ·memoryEnd(SB), NOSPLIT, $0-8
	Get SP
	CurrentMemory
	I64ExtendI32U
	I64Const $16
	I64Shl
	I64Store ret+0(FP)
	RET
