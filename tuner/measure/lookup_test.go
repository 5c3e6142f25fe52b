package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// TestTimeLookup: rows take longer the longer they are, and whoever asks may stop.
func TestTimeLookup(t *testing.T) {
	var took []float64
	for _, hidden := range []int{256, 8192} {
		c, ok := model.Tiny("llama")
		if !ok {
			t.Fatal("there is no small llama")
		}
		m, err := c.Model()
		if err != nil {
			t.Fatal(err)
		}
		m.Dims.Hidden = hidden
		s, err := TimeLookup(t.Context(), m, gguf.Q8_0, 5*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, s)
	}
	if !(took[0] > 0 && took[1] > 4*took[0]) {
		t.Errorf("rows of 256 and 8192 values take %g s", took)
	}
	c, _ := model.Tiny("llama")
	m, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TimeLookup(ctx, m, gguf.Q8_0, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
