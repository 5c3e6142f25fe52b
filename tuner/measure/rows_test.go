package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// rowWork is that of the first op of a kind of the small llama, with rows of so many numbers.
func rowWork(t *testing.T, kind model.Kind, hidden int) exec.RowWork {
	t.Helper()
	c, ok := model.Tiny("llama")
	if !ok {
		t.Fatal("there is no small llama")
	}
	m, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.Dims.Hidden = hidden
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Kind != kind {
			continue
		}
		op.Heads.Q *= hidden / 256
		w, ok := exec.RowWorkOf(m, op, exec.RowForm{Vec: microkernel.RefVec(), Table: gguf.Q8_0})
		if !ok {
			break
		}
		return w
	}
	t.Fatalf("there is no work of ops of kind %d", kind)
	return exec.RowWork{}
}

// TestTimeRows: rows take longer the longer they are, whatever is done to them, and whoever asks
// may stop.
func TestTimeRows(t *testing.T) {
	for _, kind := range []model.Kind{model.OpEmbed, model.OpNorm, model.OpRotate} {
		var took []float64
		for _, hidden := range []int{256, 8192} {
			s, err := TimeRows(t.Context(), rowWork(t, kind, hidden), 5*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, s)
		}
		if !(took[0] > 0 && took[1] > 4*took[0]) {
			t.Errorf("kind %d: rows of 256 and 8192 values take %g s", kind, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TimeRows(ctx, rowWork(t, model.OpNorm, 256), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
