package arch_test

import (
	"testing"

	"sandwich/runtime/model/arch"
)

// TestRegisterTwice checks that Register panics if a name is taken.
func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("llama was registered twice")
		}
	}()
	arch.Register(arch.Architecture{Name: "llama"})
}
