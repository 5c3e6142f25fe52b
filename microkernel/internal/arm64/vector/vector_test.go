package vector

import (
	"bytes"
	"testing"

	"sandwich/microkernel/internal/kernel"
)

// TestOp checks that every row operation can be generated, with the same bytes each time, or is
// left to plain Go. Package vec tests what the code computes.
func TestOp(t *testing.T) {
	for op := range kernel.VectorOps {
		a, err := Generator{}.Op(op)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Generator{}.Op(op)
		if (len(a) == 0) != plainGo[op] || !bytes.Equal(a, b) {
			t.Errorf("two generations of operation %d differ, or it has no code", op)
		}
	}
}
