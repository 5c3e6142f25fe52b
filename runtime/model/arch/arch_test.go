package arch_test

import (
	"testing"

	"sandwich/runtime/model/arch"
)

// TestRegisterTwice: two files of one name are a mistake that a program shows when it starts.
func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("llama was registered twice")
		}
	}()
	arch.Register(arch.Architecture{Name: "llama"})
}
