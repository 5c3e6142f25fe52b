package modelfile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// TestReadVector reads a part of a tensor that several products share, for each of two experts.
func TestReadVector(t *testing.T) {
	v := model.Vector{Name: "b", N: 2, At: 1, Of: 4, Stack: 2}
	var raw bytes.Buffer
	for i := range 8 {
		_ = binary.Write(&raw, binary.LittleEndian, float32(i))
	}
	if err := readVector(&v, &gguf.Tensor{Name: "b", Dims: []int{4, 2}, Type: gguf.F32,
		Data: raw.Bytes()}); err != nil ||
		len(v.Data) != 4 || v.Data[0] != 1 || v.Data[3] != 6 {
		t.Errorf("%v, %v", v.Data, err)
	}
}
