package metadata

import (
	"fmt"

	"sandwich/runtime/gguf"
)

// source is a set of metadata: a GGUF file, or the values of a plan.
type source interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (b, ok bool)
	Ints(key string) ([]int32, bool)
	// Tensors reports which layers have a tensor with a name.
	Tensors(name string, layers int) []bool
}

// fileSource is a GGUF file. It records which keys were requested and whether their type matched,
// so that unread can report values of a wrong type.
type fileSource struct {
	*gguf.File
	wanted map[string]bool // requested keys; true if a request matched the type
}

func (f *fileSource) note(key string, ok bool) { f.wanted[key] = f.wanted[key] || ok }

func (f *fileSource) Uint(key string) (uint64, bool) {
	v, ok := f.File.Uint(key)
	f.note(key, ok)
	return v, ok
}

func (f *fileSource) Float(key string) (float64, bool) {
	v, ok := f.File.Float(key)
	f.note(key, ok)
	return v, ok
}

func (f *fileSource) Bool(key string) (b, ok bool) {
	b, ok = f.File.Bool(key)
	f.note(key, ok)
	return b, ok
}

func (f *fileSource) Ints(key string) ([]int32, bool) {
	v, ok := f.File.Ints(key)
	f.note(key, ok)
	return v, ok
}

// unread returns errors for keys that were requested and whose values have a wrong type.
func (f *fileSource) unread() (wrong []error) {
	for _, key := range f.Keys() {
		if read, wanted := f.wanted[key]; wanted && !read {
			wrong = append(wrong, fmt.Errorf("invalid value %.60s for %s; the file is damaged", f.Text(key), key))
		}
	}
	return wrong
}

func (f *fileSource) Tensors(name string, layers int) []bool {
	out := make([]bool, layers)
	for i := range out {
		_, out[i] = f.Tensor(fmt.Sprintf("blk.%d.%s", i, name))
	}
	return out
}
