package microkernel

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/jit"
)

// arena holds every generated function of the process. Functions are never freed: all kernels of a tuning run are a few
// megabytes, and a function that nobody can free is one that nobody can call after it was freed.
var arena jit.Arena

// assemble runs emit on an empty function for the instruction set and returns its machine code. Emitting an instruction
// beyond the instruction set is an error.
func assemble(isa ISA, emit func(a *asm.Asm)) ([]byte, error) {
	var level asm.Level
	switch isa {
	case AVX2:
		level = asm.AVX2
	case AVX512:
		level = asm.AVX512
	default:
		return nil, fmt.Errorf("no code generator for %s", isa)
	}
	a := asm.New(level)
	emit(a)
	return a.Finish()
}

var sayNoExec sync.Once

// load puts machine code into executable memory. Where the system forbids that, the error wraps jit.ErrNoExec, a warning has
// been logged once, and the caller runs its plain-Go oracle instead.
func load(codes ...[]byte) ([]jit.Func, error) {
	fs, err := arena.Load(codes...)
	if errors.Is(err, jit.ErrNoExec) {
		sayNoExec.Do(func() {
			slog.Warn("no executable memory: running plain-Go kernels, which are many times slower", "reason", err)
		})
	}
	return fs, err
}
