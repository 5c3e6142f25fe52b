// Package filehash identifies versions of a model's file.
package filehash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sandwich/runtime/gguf"
)

const (
	sampleBytes = 4 << 10 // at the beginning of each tensor
	digits      = 12      // of the result
)

// Of returns a short hash in hexadecimal digits of the metadata, of the shapes and types of the
// tensors, and of the first bytes of each tensor. It reads little of a large file, so that files
// which differ only in other bytes have equal hashes. It returns an error if the file was truncated
// meanwhile.
func Of(f *gguf.File) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, f.Size())
	for _, key := range f.Keys() {
		fmt.Fprintf(sum, "%q %x\n", key, f.Encoded(key))
	}
	err := f.Guard(func() error {
		for _, t := range f.Tensors() {
			fmt.Fprintf(sum, "%q %s %d %d\n", t.Name, t.Type, t.Dims, len(t.Data))
			sum.Write(t.Data[:min(len(t.Data), sampleBytes)])
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:digits], err
}
