package kernels

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sandwich/microkernel/devgen/spirv"
)

// TestSPIRVIsValid checks the modules of all kernels by spirv-val, with and without sequences for
// inexact devices.
func TestSPIRVIsValid(t *testing.T) {
	validator, err := exec.LookPath("spirv-val")
	if err != nil {
		t.Skip("spirv-val is not installed: install spirv-tools")
	}
	dir := t.TempDir()
	for i, k := range allKernels(t) {
		options := spirv.Options{}
		if i%2 == 1 {
			options = spirv.Options{SoftFMA: true, SoftDiv: true, SoftSqrt: true, KeepSubnormal: true}
		}
		words, err := spirv.Emit(k, options)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 0, 4*len(words))
		for _, w := range words {
			text = binary.LittleEndian.AppendUint32(text, w)
		}
		path := filepath.Join(dir, k.Name+".spv")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(validator, "--target-env", "vulkan1.3", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", k.Name, err, out)
			return
		}
	}
}
